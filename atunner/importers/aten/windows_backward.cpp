// Gradients of convolutions and pooling: the forward graph is differentiated.
#include <functional>
#include <string>
#include <utility>

#include "atunner/graph/gradient/gradient.h"
#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Combine;
using graph::GraphBuilder;
using graph::Value;

/// The gradients of a graph of these operands by each of them. `build` makes its result of the
/// operands' inputs.
std::vector<Value> GradientsOf(
    AtenCall& call, const std::vector<Value>& operands, Value dy,
    const std::function<Value(GraphBuilder&, const std::vector<Value>&)>& build) {
  if (!call.g.ok()) return {};
  GraphBuilder forward("forward");
  std::vector<Value> inputs;
  for (size_t i = 0; i < operands.size(); ++i)
    inputs.push_back(
        forward.Input(std::string("x") + std::to_string(i), call.g.TypeOf(operands[i])));
  forward.Output("y", build(forward, inputs));
  auto graph = std::move(forward).Finish();
  auto backward = graph ? graph::Gradient(*graph) : graph;
  if (!backward) {
    call.g.Fail(backward.error());
    return {};
  }
  std::vector<Value> all = operands;
  all.push_back(dy);
  return Inline(call.g, *backward, all);
}

}  // namespace

std::vector<Value> ConvolutionBackward(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input"), w = call.Tensor("weight");
  const Value dy = call.Tensor("grad_output");
  const size_t rank = call.ShapeOf(w).size(), n = rank < 2 ? 0 : rank - 2;
  if (!call.Check(n >= 1 && n <= 3 && call.ShapeOf(x).size() == rank,
                  "the gradient of a convolution of another rank"))
    return {};
  const graph::WindowAxes axes = ConvolutionAxes(call, n, w);
  const int64_t groups = call.Whole("groups");
  const bool transposed = call.Flag("transposed");
  const Integers added = transposed ? call.PerAxis("output_padding", n, 0) : Integers();
  std::vector<Value> results = GradientsOf(
      call, {x, w}, dy, [&](GraphBuilder& g, const std::vector<Value>& in) {
        return transposed ? graph::ConvolveTransposed(g, in[0], in[1], groups, axes, added)
                          : graph::Convolve(g, in[0], in[1], groups, axes);
      });
  if (results.size() != 2) return {};
  Integers others = {0};
  for (size_t axis = 2; axis < rank; ++axis) others.push_back(static_cast<int64_t>(axis));
  const Value sum = call.g.Reduce(Combine::kSum, call.Wide(dy), others);
  results.push_back(call.g.Cast(sum, call.TypeOf(dy)));
  return results;
}

std::vector<Value> MaxPoolBackward(AtenCall& call, std::string_view text) {
  const auto n = static_cast<size_t>(text[0] - '0');
  const Value x = call.Tensor("self");
  if (!call.Check(call.ShapeOf(x).size() == n + 2, "the gradient of pooling without a batch"))
    return {};
  const Integers size = call.PerAxis("kernel_size", n, 1);
  const graph::WindowAxes axes = PoolingAxes(call, x, n, size);
  return GradientsOf(call, {x}, call.Tensor("grad_output"),
                     [&](GraphBuilder& g, const std::vector<Value>& in) {
                       return LargestOfWindows(g, in[0], size, axes);
                     });
}

}  // namespace atunner::importers
