// Shared by the families of graphs: offsets of tensor elements as CUDA text, and how kernels begin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/cuda_text/index_text.h"
#include "atunner/graph/graph.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// A graph and the node that a family computes.
struct NodeForm {
  graph::ValidGraph graph;
  graph::NodeId node = 0;
};
/// The type of indices: "int" where 32 bits can number all elements of every tensor (divisions are
/// much cheaper), else "long long".
std::string IndexType(const graph::ValidGraph& graph, const Dims& dims);
/// The text indented by its braces; preprocessor lines stay at the left.
std::string Indented(const std::string& text);
/// The text of a loop over the lanes of a vector: `before` and the statements that all lanes share,
/// then the loop, whose body begins with `first`.
std::string LanesText(const graph::ElementText& elements, const std::string& each,
                      const std::string& indent, const std::string& before = "",
                      const std::string& first = "");
/// The text that computes vectors of the outputs and writes them at `offset`, if `guard` allows it.
std::string ResultsText(graph::ElementText& elements, const graph::ValidGraph& graph,
                        const std::vector<graph::Output>& outputs, const graph::Coordinates& at,
                        const std::string& offset, const std::string& indent,
                        const std::string& first = "", const std::string& guard = "");

/// The parameters of a kernel of a graph's task: tensors as in_x and out_y, then open sizes.
std::string KernelParameters(const KernelSpec& spec);
/// The first line of such a kernel, whose blocks have BLOCK threads.
std::string KernelHead(const KernelSpec& spec, std::string_view name = "kernel");
/// Bytes of the widest element that the task reads or writes.
int64_t WidestElement(const KernelSpec& spec);

/// The name of the operation that combines two values (kernels/graph/combine.cuh); a mean is a sum
/// until it is divided.
std::string CombinerName(graph::Combine op);

/// True if all results are rounded to 16 bits and the graph has functions that this makes cheaper.
bool MayBeNarrow(const graph::ValidGraph& graph);
/// The text of the cheaper functions if the task's results allow them; else empty.
std::string_view NarrowText(const KernelSpec& spec, const graph::ValidGraph& graph);
/// Adds the parameter that chooses between exact and cheaper functions; IsNarrow reads it.
void AddFunctions(const graph::ValidGraph& graph, ParameterSpace& space);
bool IsNarrow(const graph::ValidGraph& graph, const ParameterSpace& space,
              const Configuration& configuration);

/// A template for the kernels of a graph. Every integer parameter of a configuration becomes a
/// constant of the same name in the source.
class GraphTemplate : public BoundTemplate {
 protected:
  GraphTemplate(const KernelSpec& spec, const DeviceProfile& profile, graph::ValidGraph graph)
      : BoundTemplate(spec, profile), graph_(std::move(graph)) {}

  const graph::TensorType& TypeOf(graph::NodeId id) const { return graph_.node(id).type; }
  /// Sizes to check a task with one open size at: the least size, and one at which blocks of
  /// `of_block` elements of `shape` fill more than two blocks, if a CPU can compute so many
  /// elements. Empty for tasks without an open size.
  std::vector<Dims> CheckSizes(const graph::Shape& shape, int64_t of_block) const;
  ValidSizes FreeSizes(const Configuration&) const override { return OpenSize(); }
  /// A launch with the task's tensors and sizes as arguments.
  LaunchStep Launch(std::string entry, const std::string& blocks, const std::string& threads) const;
  /// The source: constants of the configuration, `constants`, then `texts`.
  SourceUnit Source(const Configuration& configuration, std::string_view schedule,
                    const ConstantBlock& constants,
                    std::initializer_list<std::string_view> texts) const;

  graph::ValidGraph graph_;
};
/// Numbers of elements that a thread may move at once: powers of two that divide `neighbours`, at
/// most `most_bytes` of the widest type.
std::vector<Value> VectorWidths(int64_t widest, int64_t neighbours, int64_t most_bytes);

}  // namespace atunner
