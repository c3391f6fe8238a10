#include "atunner/graph/text_fuzz.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/text.h"

namespace atunner::graph {
namespace {

constexpr int64_t kFewElements = 4096;

/// Work that a fuzzer can afford.
bool IsSmall(const ValidGraph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const Node& node) {
    const int64_t count = ElementCount(node.type.shape).factor();
    return count <= kFewElements && !node.As<Contract>();
  });
}

}  // namespace

void FuzzText(std::string_view text) {
  const auto graph = Parse(text);
  if (!graph) return;
  const std::string once = Print(*graph);
  const auto again = Parse(once);
  ATUNNER_CHECK(again.has_value());
  ATUNNER_CHECK(Print(*again) == once);
  Dims sizes;
  for (const auto& [name, range] : graph->symbols()) sizes[name] = range.low;
  const auto concrete = Specialise(*graph, sizes);
  if (!concrete || !IsSmall(*concrete)) return;
  std::vector<Tensor> inputs;
  for (NodeId id : concrete->inputs()) {
    const TensorType& type = concrete->node(id).type;
    Tensor& input = inputs.emplace_back(Tensor{type.dtype, {}, {}});
    for (const Extent& extent : type.shape) input.shape.push_back(extent.factor());
    input.cells.assign(static_cast<size_t>(ElementCount(type.shape).factor()),
                       CellOf(type.dtype, 1));
  }
  for (Precision precision : {Precision::kExact, Precision::kDeclared})
    (void)Evaluate(*concrete, inputs, precision);
}

}  // namespace atunner::graph

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::graph::FuzzText({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
