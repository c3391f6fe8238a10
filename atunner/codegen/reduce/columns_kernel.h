// The parts that the kernels of an outer-axis reduction share: how each reduction accumulates, and
// how elements of the program are named and indexed. Used by columns_text.cpp, which writes a
// kernel per pass, and columns_ring_text.cpp, which writes one kernel for all.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/columns_schedule.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// How a thread accumulates the reductions of a program. A sum or a maximum accumulates in a value
/// of the result's type. A mean with a variance accumulates in Moments (Welford), a maximum with a
/// sum of exponentials in a MaxExpSum (online softmax); kernels/graph/columns.cuh and
/// columns_ring.cuh define both.
class Accumulators {
 public:
  explicit Accumulators(const ReductionProgram& program) : program_(program) {}

  const graph::TensorType& TypeOf(graph::NodeId id) const { return program_.graph.node(id).type; }
  std::string Arithmetic(graph::NodeId id) const;
  /// The C++ variable of a reduction's result.
  std::string Name(graph::NodeId id) const { return program_.ValueName(id); }
  bool HasExponentials(graph::NodeId id) const;
  bool HasMoments(graph::NodeId id) const;
  /// True for argmax and argmin, which accumulate in a Place (kernels/graph/columns.cuh).
  bool HasPlace(graph::NodeId id) const;
  /// The C++ type in which a reduction sees its elements.
  std::string ElementType(graph::NodeId id) const;

  /// The variable of the block's accumulator, and that of a single thread.
  std::string Variable(graph::NodeId id) const;
  std::string ThreadVariable(graph::NodeId id) const;
  std::string Type(graph::NodeId id) const;
  /// The class of the combining operation, with a static function `of`.
  std::string Combiner(graph::NodeId id) const;
  /// The same for an element that comes after all that were accumulated.
  std::string CombinerOfLater(graph::NodeId id) const;
  /// The accumulator of no elements. Places begin at the index `first`.
  std::string Neutral(graph::NodeId id, const std::string& first = kNoPlace) const;

  /// Statements. `lanes` is the constant that says how many accumulators a thread has. `first` is
  /// an index along the reduced axis that is not beyond those of the elements to come: the place
  /// where all of them are as small as the neutral value.
  std::string Declare(graph::NodeId id, const std::string& name, const char* lanes,
                      const std::string& first = kNoPlace) const;
  /// Sets the counts of a thread's moments, after a loop.
  std::string SetCounts(graph::NodeId id) const;
  /// Combines over the threads of a block, which have gathered `elements` elements in all.
  std::string CombineInBlock(graph::NodeId id, const char* elements) const;
  /// The results from the block's accumulator: divides means, takes moments apart.
  std::string Results(graph::NodeId id) const;

 private:
  /// An index beyond all others.
  static constexpr const char* kNoPlace = "0x7fffffff";

  graph::Combine CombineOf(graph::NodeId id) const;

  const ReductionProgram& program_;
};

/// The common parts of every kernel of a program: parameters, coordinates, elements and outputs.
class ColumnsKernel {
 public:
  ColumnsKernel(const ReductionProgram& program, const KernelSpec& spec,
                const ColumnsSchedule& schedule);
  /// True if an element was computed from an element at other coordinates.
  bool failed() const { return failed_; }

 protected:
  std::string Opening(const std::string& name, const std::string& bounds,
                      const std::vector<ColumnsPartial>& partials) const;
  /// Lines that set k0, k2, … from the number of a kept element, or r1, … from that of a reduced
  /// one.
  std::string Coordinated(const char* prefix, const std::string& number, bool reduced,
                          const std::string& indent) const;
  std::string Index() const;
  /// The offset of an element from the begin of a tensor of the space's shape. In parentheses, so
  /// that one address is computed.
  std::string Offset() const;
  graph::Coordinates ElementAt() const { return program_.ElementAt(schedule_.vector); }
  graph::Coordinates KeptAt(graph::NodeId id) const {
    return program_.SharedAt(id, schedule_.vector);
  }
  std::string Lane() const { return lanes_ > 1 ? "[lane]" : "[0]"; }
  /// Elements where the results of the passes before `pass` are known.
  graph::ElementText Elements(int pass, const std::string& indent) const;
  /// Stores one value per kept element; where several blocks know it, `first` is 0 in one of them.
  std::string KeptOutputs(const char* first);
  void Note(const graph::ElementText& elements) { failed_ = failed_ || elements.failed(); }

  const ReductionProgram& program_;
  const KernelSpec& spec_;
  ColumnsSchedule schedule_;
  Accumulators sums_;
  int64_t lanes_;                     ///< kept elements of a thread
  std::vector<graph::NodeId> early_;  ///< inputs that were loaded ahead of the elements

 private:
  bool failed_ = false;
};

/// One kernel for all passes, with a ring of segments in shared memory, and the kernel that clears
/// the flags of published partial results.
class ColumnsRing : public ColumnsKernel {
 public:
  using ColumnsKernel::ColumnsKernel;
  std::string Run();

 private:
  std::string Prologue(const std::vector<graph::NodeId>& reductions) const;
  std::string SegmentText(const std::string& segment) const;
  std::string Step() const;
  std::string ValueText(graph::NodeId id);
  std::string PartialText(const std::vector<graph::NodeId>& reductions) const;
  std::string LoadEarly();
  std::vector<graph::NodeId> Buffered() const;
  std::string Buffers() const;
  std::string Copies() const;
  std::string Loads(graph::ElementText& elements) const;
  std::string WritingPass();
};

}  // namespace atunner
