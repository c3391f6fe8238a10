// The choices of a schedule for outer-axis reductions that change the text of its kernels, and the
// workspaces of partial results.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/reduction_program.h"

namespace atunner {

struct ColumnsSchedule {
  int64_t vector = 1;
  int64_t splits = 1;  ///< blocks that share the reduction of one column
  int64_t unroll = 1;
  bool hold = false;  ///< keep the elements in registers between passes
  /// Keep a segment of a column in a ring in shared memory and write it some segments later, so
  /// that one kernel does both passes (columns_ring_text.cpp).
  bool ring = false;
  bool narrow = false;  ///< use the faster functions that are exact to 16-bit results
};

/// The workspace of a reduction's partial results, one for each of the splits.
struct ColumnsPartial {
  graph::NodeId id = 0;
  std::string name;
  std::string type;  ///< of one partial result
  size_t bytes = 4;  ///< of one partial result
};
/// One workspace per reduction; with `ring` one for all, of 64-bit words that each hold 32 bits of
/// data and a flag.
std::vector<ColumnsPartial> PartialsOf(const ReductionProgram& program, bool ring);

}  // namespace atunner
