// Matrix products, also of quantised operands.
#include <fmt/format.h>

#include <cmath>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

const char* kTwo = "two shapes: request.shapes 128,256 256,512";

/// One operand of a product. Its axes before the matrix get the letters of the result's `batch`
/// axes. An axis of extent 1 is removed if the other operand is larger there, which broadcasts it.
Value Side(Call& call, Value x, const std::string& matrix, size_t batch, const Shape& other,
           std::string& letters) {
  const Shape full = call.g.TypeOf(x).shape;
  const size_t axes = full.size() - 2;
  Shape kept;
  for (size_t i = 0; i < axes; ++i) {
    const size_t from_right = axes - i;
    const bool stretched = full[i].one() && from_right <= other.size() - 2 &&
                           !other[other.size() - 2 - from_right].one();
    if (stretched) continue;
    letters += static_cast<char>('p' + batch - from_right);
    kept.push_back(full[i]);
  }
  letters += matrix;
  kept.insert(kept.end(), full.end() - 2, full.end());
  return kept == full ? x : call.g.Reshape(x, kept);
}

/// [batch…, m, k] · [batch…, k, n], with either operand transposed; the batch axes are broadcast.
Value Product(Call& call, Value a, Value b) {
  const Shape left_shape = call.g.TypeOf(a).shape;
  const Shape right_shape = call.g.TypeOf(b).shape;
  const size_t batch = std::max(left_shape.size(), right_shape.size()) - 2;
  std::string left;
  std::string right;
  const Value x = Side(call, a, call.Flag("transpose_a") ? "km" : "mk", batch, right_shape, left);
  const Value y = Side(call, b, call.Flag("transpose_b") ? "nk" : "kn", batch, left_shape, right);
  std::string result = "mn";
  for (size_t i = batch; i > 0; --i) result.insert(result.begin(), static_cast<char>('p' + i - 1));
  return call.g.Contract(left + "," + right + "->" + result, x, y);
}

bool AreMatrices(Call& call) {
  const size_t a = call.shape(0).size();
  const size_t b = call.shape(1).size();
  return call.Check(a >= 2 && b >= 2 && std::max(a, b) <= 8,
                    fmt::format("a product of shapes of ranks {} and {}", a, b),
                    "matrices, with up to six batch axes before them");
}

void BuildMatmul(Call& call) {
  if (!AreMatrices(call)) return;
  const Value a = call.Input("a", call.shape(0));
  const Value b = call.Input("b", call.shape(1));
  call.g.Output("c", Product(call, a, b));
}

/// beta · bias + alpha · a · b.
void BuildAddmm(Call& call) {
  if (!AreMatrices(call)) return;
  const Value a = call.Input("a", call.shape(0));
  const Value b = call.Input("b", call.shape(1));
  const Value product = Product(call, a, b);
  if (!call.g.ok()) return;
  const Value bias = call.Input("bias", {call.g.TypeOf(product).shape.back()});
  call.Output("c",
              call.g.Map(fmt::format("a * ({}) + b * ({})", call.Real("alpha"), call.Real("beta")),
                         {call.Wide(product), call.Wide(bias)}));
}

void BuildOuter(Call& call) {
  if (!call.Check(call.shape(0).size() == 1 && call.shape(1).size() == 1, "outer takes vectors"))
    return;
  const Value a = call.g.Reshape(call.Input("a", call.shape(0)), {call.shape(0)[0], Extent(1)});
  call.g.Output("c", call.g.Map("a * b", {a, call.Input("b", call.shape(1))}));
}

void BuildDot(Call& call) {
  if (!call.Check(!call.shape().empty(), "dot takes […, N]")) return;
  const Value a = call.Wide(call.Input("a", call.shape()));
  const Value b = call.Wide(call.Input("b", call.shape()));
  call.Output("y", call.g.Reduce(Combine::kSum, call.g.Map("a * b", {a, b}), {-1}));
}

void BuildMatrixVector(Call& call) {
  const Value a = call.Input("a", call.shape());
  if (!call.Check(call.shape().size() == 2, "a matrix has two dimensions")) return;
  call.g.Output("y", call.g.Contract("mk,k->m", a, call.Input("x", {call.shape()[1]})));
}

/// A product with a triangular matrix a: one side of its diagonal counts as zero.
void BuildTriangular(Call& call) {
  const Value a = call.Input("a", call.shape(0));
  const Value b = call.Input("b", call.shape(1));
  if (!call.Check(call.shape(0).size() == 2, "a matrix has two dimensions")) return;
  const char* side = call.Flag("upper") ? "select(index(-1) >= index(-2), a, 0)"
                                        : "select(index(-1) <= index(-2), a, 0)";
  call.g.Output(
      "c", call.g.Contract("mk,kn->mn", call.g.Map(side, {a}), b, std::nullopt, /*sparse=*/true));
}

void BuildDiagonal(Call& call) {
  if (!call.Check(call.shape().size() == 2, "a matrix has two dimensions")) return;
  const Value d = call.g.Reshape(call.Input("d", {call.shape()[0]}), {call.shape()[0], Extent(1)});
  const Value b = call.Input("b", call.shape());
  call.g.Output("c", call.g.Map("a * b", {d, b}));
}

void BuildLinear(Call& call) {
  const Shape x = call.shape(0);
  const Shape w = call.shape(1);
  if (!call.Check(x.size() == 2 && w.size() == 2, "linear takes matrices",
                  "x is M,K and weight N,K"))
    return;
  const Value input = call.Input("x", x);
  const Value product = call.g.Contract("mk,nk->mn", input, call.Input("weight", w));
  call.Output("y",
              call.g.Map("a + b", {call.Wide(product), call.Wide(call.Input("bias", {w[0]}))}));
}

bool IsLinear(Call& call) {
  return call.Check(call.shape(0).size() == 2 && call.shape(1).size() == 2, "linear takes matrices",
                    "x is M,K and weight N,K");
}

/// Weight-only quantisation: int8 weights with a scale per row.
void BuildQuantisedLinear(Call& call) {
  if (!IsLinear(call)) return;
  const Shape w = call.shape(1);
  const Value input = call.Wide(call.Input("x", call.shape(0)));
  const Value weight = call.g.Cast(call.Input("weight", w, DType::kInt8),
                                   ArithmeticType(call.dtype()));
  const Value product = call.g.Contract("mk,nk->mn", input, weight);
  call.Output("y", call.g.Map("a * b", {product, call.Wide(call.Input("scale", {w[0]}))}));
}

/// Both operands in `type`, each with a scale per row or a single one; products are summed in `as`.
void BuildScaledLinear(Call& call, DType type, DType as) {
  if (!IsLinear(call) || !call.Check(IsFloat(call.dtype()), "scales and results are floats"))
    return;
  const Shape x = call.shape(0);
  const Shape w = call.shape(1);
  const Value input = call.Input("x", x, type);
  const Value weight = call.Input("weight", w, type);
  const bool wider = call.dtype() == DType::kFloat64 && IsFloat(as);
  const Value product = call.g.Contract("mk,nk->mn", input, weight, wider ? DType::kFloat64 : as);
  const Extent rows = call.Flag("per_tensor") ? Extent(1) : x[0];
  const Extent columns = call.Flag("per_tensor") ? Extent(1) : w[0];
  const Value by_row = call.g.Reshape(call.Wide(call.Input("scale_x", {rows})), {rows, Extent(1)});
  const Value by_column = call.Wide(call.Input("scale_weight", {columns}));
  const Value wide = call.g.Cast(product, call.g.TypeOf(by_row).dtype);
  call.Output("y", call.g.Map("a * b * c", {wide, by_row, by_column}));
}

/// Weights of 4 bits, two in a byte with the first in the lower half, as 0 … 15 for -8 … 7. There
/// is one scale per group of weights of a row.
void BuildInt4Linear(Call& call) {
  if (!IsLinear(call)) return;
  GraphBuilder& g = call.g;
  const Shape w = call.shape(1);
  const Extent group(call.Whole("group"));
  const auto groups = group.factor() > 0 ? w[1].Divided(group) : std::nullopt;
  const auto bytes = w[1].Divided(Extent(2));
  if (!call.Check(groups && bytes,
                  fmt::format("group={} of a row of {}", group.factor(), w[1].ToString()),
                  "rows of even length that the groups divide"))
    return;
  const Value input = call.Wide(call.Input("x", call.shape(0)));
  const Value packed = g.Reshape(call.Input("weight", {w[0], *bytes}, DType::kUInt8),
                                 {w[0], *bytes, Extent(1)});
  const Value pairs = g.Add(Concat{2}, {g.Map("a & 15", {packed}), g.Map("a >> 4", {packed})});
  const Value whole = g.Cast(g.Reshape(pairs, {w[0], *groups, group}), g.TypeOf(input).dtype);
  const Value scale = g.Reshape(call.Wide(call.Input("scale", {w[0], *groups})),
                                {w[0], *groups, Extent(1)});
  const Value weight = g.Reshape(g.Map("(a - 8) * b", {whole, scale}), w);
  call.Output("y", g.Contract("mk,nk->mn", input, weight));
}

/// Quantisation to 8-bit floats: x / scale, clamped to the largest value.
void BuildQuantise(Call& call) {
  if (!call.Check(!call.shape().empty(), "quantize takes […, C]")) return;
  GraphBuilder& g = call.g;
  const Value x = call.Wide(call.Input("x", call.shape()));
  const Value top = g.Reduce(Combine::kMax, g.Map("abs(a)", {x}), {-1}, true);
  const Value scale = g.Map("maximum(a, 1e-12) / 448", {top});
  g.Output("y", g.Map("cast(a / b, float8_e4m3, saturate=true)", {x, scale}));
  g.Output("scale", scale);
}

/// Conversion to 8-bit floats. The rounding is the operation, so that it is part of the reference.
void BuildToFloat8(Call& call) {
  const std::string format = call.Text("format");
  if (!call.Check(format == "e4m3" || format == "e5m2", "format=" + format, "e4m3 or e5m2")) return;
  const DType type = format == "e4m3" ? DType::kFloat8E4M3 : DType::kFloat8E5M2;
  const char* saturate = call.Flag("saturate") ? "true" : "false";
  const Value x = call.Input("x", call.shape());
  const Value rounded = call.g.Map(
      fmt::format("round_to(a, {}, saturate={})", Name(type), saturate), {x});
  call.g.Output("y", call.g.Cast(rounded, type));
}

/// Products of matrices and vectors.
void AddProducts(std::vector<LibraryOperator>& library) {
  const std::vector<Attribute> transposes = {{"transpose_a", false, "a is given as […, K, M]"},
                                             {"transpose_b", false, "b is given as […, N, K]"}};
  library.push_back({"batched_matmul",
                     "batched_matmul(a[…, M, K], b[…, K, N]) → c",
                     "matrix product; the axes before the last two are broadcast",
                     "two shapes: request.shapes 8,128,256 8,256,512",
                     transposes,
                     BuildMatmul,
                     true,
                     {{2, 3, 4}, {2, 4, 5}}});
  std::vector<Attribute> scaled = transposes;
  scaled.push_back({"alpha", 1.0, "factor of the product"});
  scaled.push_back({"beta", 1.0, "factor of the bias"});
  library.push_back({"addmm",
                     "addmm(a[…, M, K], b[…, K, N], bias[N]) → c",
                     "alpha · a · b + beta · bias",
                     kTwo,
                     scaled,
                     BuildAddmm,
                     true,
                     {{3, 4}, {4, 5}}});
  library.push_back({"outer",
                     "outer(a[M], b[N]) → c[M, N]",
                     "every product of two elements",
                     "two shapes: request.shapes 4096 4096",
                     {},
                     BuildOuter,
                     true,
                     {{3}, {5}}});
  library.push_back({"dot",
                     "dot(a[…, N], b[…, N]) → y",
                     "sum of products along the last axis",
                     "one shape: request.shapes 4096,4096",
                     {},
                     BuildDot,
                     true,
                     {{3, 5}}});
  library.push_back({"matvec",
                     "matvec(a[M, K], x[K]) → y",
                     "matrix-vector product",
                     "one shape: request.shapes 4096,4096",
                     {},
                     BuildMatrixVector,
                     true,
                     {{3, 5}}});
  library.push_back({"triangular_matmul",
                     "triangular_matmul(a[M, K], b[K, N]) → c",
                     "product with one triangle of a",
                     kTwo,
                     {{"upper", false, "the triangle above the diagonal"}},
                     BuildTriangular,
                     true,
                     {{4, 4}, {4, 3}}});
  library.push_back({"diagonal_matmul",
                     "diagonal_matmul(d[M], b[M, N]) → c",
                     "rows of b times d",
                     "the shape of b: request.shapes 4096,4096",
                     {},
                     BuildDiagonal,
                     true,
                     {{3, 5}}});
  library.push_back({"linear",
                     "linear(x[M, K], weight[N, K], bias[N]) → y",
                     "x · weightᵀ + bias",
                     "two shapes: request.shapes 128,256 512,256",
                     {},
                     BuildLinear,
                     true,
                     {{3, 4}, {5, 4}}});
}

/// Products of quantised operands.
void AddQuantised(std::vector<LibraryOperator>& library) {
  library.push_back({"quantized_linear",
                     "quantized_linear(x[M, K], weight[N, K], scale[N]) → y",
                     "x · (int8 weight · scale)ᵀ",
                     "two shapes: request.shapes 128,256 512,256",
                     {},
                     BuildQuantisedLinear,
                     true,
                     {{3, 4}, {5, 4}}});
  const Attribute per_tensor = {"per_tensor", false, "one scale for x, one for the weight"};
  library.push_back({"int8_linear",
                     "int8_linear(x[M, K], weight[N, K], scale_x[M], scale_weight[N]) → y",
                     "x · weightᵀ of int8, summed in int32, times both scales",
                     "two shapes: request.shapes 128,256 512,256",
                     {per_tensor},
                     [](Call& call) { BuildScaledLinear(call, DType::kInt8, DType::kInt32); },
                     false,
                     {{3, 4}, {5, 4}}});
  library.push_back(
      {"fp8_linear",
       "fp8_linear(x[M, K], weight[N, K], scale_x[M], scale_weight[N]) → y",
       "x · weightᵀ of float8_e4m3, summed in float32, times both scales",
       "two shapes: request.shapes 128,256 512,256",
       {per_tensor},
       [](Call& call) { BuildScaledLinear(call, DType::kFloat8E4M3, DType::kFloat32); },
       false,
       {{3, 4}, {5, 4}}});
  library.push_back({"int4_linear",
                     "int4_linear(x[M, K], weight[N, K / 2], scale[N, K / group]) → y",
                     "x · (int4 weight · scale)ᵀ, two weights in a byte, a scale per group",
                     "x, and the weight as if unpacked: request.shapes 128,256 512,256",
                     {{"group", int64_t{32}, "weights that share a scale"}},
                     BuildInt4Linear,
                     true,
                     {{3, 64}, {5, 64}}});
  library.push_back({"quantize_fp8",
                     "quantize_fp8(x[…, C]) → y, scale",
                     "rows as float8_e4m3 with a scale each",
                     "one shape: request.shapes 4096,4096",
                     {},
                     BuildQuantise,
                     false,
                     {{3, 5}}});
  library.push_back({"to_float8",
                     "to_float8(x[…]) → y",
                     "x as 8-bit floats; beyond their range NaN (e4m3) or infinity (e5m2)",
                     "one shape: request.shapes 4096,4096",
                     {{"format", std::string("e4m3"), "e4m3 or e5m2"},
                      {"saturate", false, "beyond the range the largest finite number instead"}},
                     BuildToFloat8,
                     false,
                     {{3, 5}}});
}

}  // namespace

void AddContractions(std::vector<LibraryOperator>& library) {
  AddProducts(library);
  AddQuantised(library);
}

}  // namespace atunner::graph
