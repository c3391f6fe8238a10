// The text of the kernels that compute a ReductionProgram.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduction_program.h"
#include "atunner/model/kernel_spec.h"

namespace atunner {

struct ColumnsSchedule {
  int64_t vector = 1;
  int64_t splits = 1;  ///< parts of what is reduced that blocks of their own work on
  int64_t unroll = 1;
  bool hold = false;    ///< elements between passes, in registers
  bool ring = false;    ///< the same in shared memory, of parts of strips, which are written after others: one kernel
  bool narrow = false;  ///< short functions, as 16-bit results need them
  int64_t parked_vectors = 0;  ///< of each input, in a block, for all parts at once
};

/// What a reduction's parts are kept in between kernels, where there are splits.
struct ColumnsPartial {
  graph::NodeId id = 0;
  std::string name;
  std::string type;  ///< of one part
  size_t bytes = 4;  ///< of it
};
/// What blocks with rings tell each other lies in words of 64 bits.
std::vector<ColumnsPartial> PartialsOf(const ReductionProgram& program, bool ring);

/// The inputs that a schedule parks, and where each begins in the dynamic shared memory of a block.
struct ColumnsParked {
  graph::NodeId id = 0;
  int64_t offset = 0;  ///< in bytes, a multiple of 16
};
/// `vectors`: that a block parks of each. `bytes` becomes what all of them take.
std::vector<ColumnsParked> ParkedOf(const ReductionProgram& program, int64_t vectors, int64_t vector, int64_t& bytes);

/// Names of the kernels in the order in which they run.
std::vector<std::string> ColumnsKernels(const ReductionProgram& program, const ColumnsSchedule& schedule);
/// Their text, for constants and helpers of kernels/graph in front of it.
std::string ColumnsText(const ReductionProgram& program, const KernelSpec& spec, const ColumnsSchedule& schedule);

/// Is everything that elements are computed from where its coordinates say?
bool ColumnsCanBeWritten(const ReductionProgram& program);
/// Are there elements to park, and is each used where it lies alone?
bool ColumnsCanPark(const ReductionProgram& program);

}  // namespace atunner
