// What families of graphs share: where the elements of tensors lie, as text of a kernel, and how
// kernels begin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/cuda_text/index_text.h"
#include "atunner/graph/graph.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// A graph, and the node in it that a family is about.
struct NodeForm {
  graph::ValidGraph graph;
  graph::NodeId node = 0;
};
/// 32 bits where they number every element of every tensor: dividing them is much cheaper.
std::string IndexType(const graph::ValidGraph& graph, const Dims& dims);
/// Each line as far in as the braces around it say, but for the preprocessor's.
std::string Indented(const std::string& text);
/// What a kernel does for each lane of a vector: what all share, `before`, and a loop over the
/// lanes, which begin with `first`.
std::string LanesText(const graph::ElementText& elements, const std::string& each,
                      const std::string& indent, const std::string& before = "",
                      const std::string& first = "");
/// Vectors of results: their elements, and where they are written, if at all (`guard`).
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

/// What combines two values in kernels (kernels/graph/combine.cuh); a mean is a sum until it is
/// divided.
std::string CombinerName(graph::Combine op);

/// Are all results rounded to 16 bits, and is there something that this makes cheaper?
bool MayBeNarrow(const graph::ValidGraph& graph);
/// The text of cheaper functions where a task's results bear them; else empty.
std::string_view NarrowText(const KernelSpec& spec, const graph::ValidGraph& graph);
/// The parameter of a space that says which functions to use, and what a configuration says.
void AddFunctions(const graph::ValidGraph& graph, ParameterSpace& space);
bool IsNarrow(const graph::ValidGraph& graph, const ParameterSpace& space,
              const Configuration& configuration);

/// Kernels of a graph's task. Every number that a configuration chooses is a constant of its name
/// in their source.
class GraphTemplate : public BoundTemplate {
 protected:
  GraphTemplate(const KernelSpec& spec, const DeviceProfile& profile, graph::ValidGraph graph)
      : BoundTemplate(spec, profile), graph_(std::move(graph)) {}

  const graph::TensorType& TypeOf(graph::NodeId id) const { return graph_.node(id).type; }
  /// Check sizes of a task with one open size: its least, and one at which blocks that take
  /// `of_block` elements of `shape` have enough for more than two of them, if a CPU can compute so
  /// many. None for a task without.
  std::vector<Dims> CheckSizes(const graph::Shape& shape, int64_t of_block) const;
  SizeFreedom FreeSizes(const Configuration&) const override { return OpenSize(); }
  /// With the task's tensors and sizes as arguments.
  LaunchStep Launch(std::string entry, const std::string& blocks, const std::string& threads) const;
  /// Constants of the configuration, `constants`, then `texts`.
  SourceUnit Source(const Configuration& configuration, std::string_view schedule,
                    const ConstantBlock& constants,
                    std::initializer_list<std::string_view> texts) const;

  graph::ValidGraph graph_;
};
/// What a thread may move at once: powers of two, at most `most_bytes` of elements of the widest
/// type.
std::vector<Value> VectorWidths(int64_t widest, int64_t neighbours, int64_t most_bytes);

}  // namespace atunner
