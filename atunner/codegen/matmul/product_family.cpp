// Matrix products inside of graphs, single or batched, with a triangular operand or not, and with
// an epilogue (scales, a bias, an activation).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/codegen/matmul/matrix_product.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/epilogue_text.h"
#include "atunner/model/value/capabilities.h"

namespace atunner {
namespace {

using graph::NodeId;
using graph::ProductForm;
using graph::ValidGraph;

bool Serves(const MatrixProduct& product, DType sums) {
  const auto half = [](DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; };
  const auto whole = [](DType type) { return type == DType::kInt8 || type == DType::kUInt8; };
  const DType a = product.a.dtype;
  const DType b = product.b.dtype;
  const bool single = product.c.dtype == DType::kFloat32;
  if (half(a)) return a == b && (single || product.c.dtype == a);
  // A matrix times a vector in float32 is a reduction: tiles would multiply little but zeros.
  const bool thin = product.m == "1" || product.n == "1";
  if (a == DType::kFloat32) return a == b && single && !thin;
  if (!(single || half(product.c.dtype)) || !product.b_transposed || SizeOf(a) != 1 ||
      SizeOf(b) != 1)
    return false;
  if (product.triangle != 0) return false;
  return IsFloat(a) ? IsFloat(b) && SizeOf(sums) > 1
                    : whole(a) && whole(b) && sums == DType::kInt32;
}

/// True if tensor maps can copy tiles of two such products, in whole units, and the depth can be
/// counted in 31 bits.
bool ServesPairs(const MatrixProduct& product) {
  const auto whole = [](const std::string& extent) {
    return extent.find_first_not_of("0123456789") == extent.npos && std::stoll(extent) % 16 == 0;
  };
  return SizeOf(product.b.dtype) == 2 && SizeOf(product.c.dtype) == 2 && whole(product.n) &&
         whole(product.k) && std::stoll(product.k) <= INT32_MAX / 2;
}

MatrixProduct Described(const ProductForm& form, MatrixProduct::Part result) {
  const auto& [batch, m, n, k, a_batched, b_transposed] = form.axes;
  return {.a = {form.a.input->name, form.a.input->type.dtype},
          .b = {form.b.input->name, form.b.input->type.dtype},
          .c = std::move(result),
          .m = form.Count(m).ToString(),
          .n = form.Count(n).ToString(),
          .k = form.depth.ToString(),
          .batch = form.Count(batch).ToString(),
          .a_batched = a_batched,
          .b_batched = !batch.empty(),
          .b_transposed = b_transposed,
          .triangle = form.a.triangle};
}

}  // namespace

std::optional<MatrixProduct> ProductOf(const Task& task) {
  const ValidGraph* fused = task.fused();
  if (!fused || fused->outputs().size() != 1) return std::nullopt;
  const ValidGraph& graph = *fused;
  std::vector<NodeId> products;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (graph.nodes()[id].As<graph::Contract>()) products.push_back(static_cast<NodeId>(id));
  }
  NodeId output = graph.outputs()[0].node;
  while (graph.node(output).As<graph::Reshape>()) output = graph.node(output).operands[0];
  if (products.empty() || products.size() > 2) return std::nullopt;
  const bool finishes = output != products[0], pair = products.size() == 2;
  if (finishes ? !graph::TakesProducts(graph, products, graph.node(output)) : pair)
    return std::nullopt;
  const auto form = graph::ProductFormOf(graph, products[0]);
  if (!form) return std::nullopt;
  MatrixProduct made = Described(*form, {graph.outputs()[0].name, graph.node(output).type.dtype});
  for (const auto& [symbol, range] : graph.symbols()) made.least[symbol] = range.low;
  if (!Serves(made, graph.node(products[0]).type.dtype)) return std::nullopt;
  if (!finishes) return made;
  const auto twin = graph::ProductFormOf(graph, products.back());
  if (pair && !(twin && form->IsTwin(*twin) && ServesPairs(made))) return std::nullopt;
  if (pair) made.twin = twin->b.input->name;
  const auto epilogue = graph::TextOfEpilogue(graph, *form, pair ? products[1] : -1, output,
                                              NarrowText(task.spec(), graph));
  if (pair && epilogue.has_elements) return std::nullopt;
  made.epilogue = epilogue.text;
  made.column_bytes = epilogue.column_bytes;
  made.epilogue_arguments = {epilogue.arguments.begin(), epilogue.arguments.end()};
  return made;
}

namespace {

BoundSchedule Bind(const KernelSpec& spec, const MatrixProduct& product,
                   const DeviceProfile& profile) {
  if (!product.twin.empty() && !CapabilitiesOf(profile).wgmma)
    return Fail(ErrorCode::kUnsupported, "the parts of '" + spec.name + "' take a GPU of Hopper");
  return BindProduct(spec, profile, product);
}

/// Two products at once take Hopper: other devices compute one after the other. A single product
/// that the device cannot multiply may be short enough to be computed element by element.
Binding Try(const Task& task) {
  auto product = ProductOf(task);
  if (!product) return {};
  const std::string_view otherwise = product->twin.empty() ? "elements" : "stages";
  return {.bind = [spec = task.spec(), product = *std::move(product)](
                      const DeviceProfile& profile) { return Bind(spec, product, profile); },
          .otherwise = otherwise};
}

}  // namespace

constinit const Family kProductFamily{"product", Try};

}  // namespace atunner
