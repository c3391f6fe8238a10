// Products of matrices, attention, and what goes with them.
#include <fmt/format.h>

#include <cmath>

#include "atunner/graph/library.h"

namespace atunner::graph {
namespace {

const char* kTwo = "two shapes: --input-shape 128,256 256,512";

/// One side of a product: the axes before the matrix get letters as those of the result, of which there are `batch`.
/// Axes of extent 1 go where the other side has more of it: that is broadcasting.
Value Side(Call& call, Value x, const std::string& matrix, size_t batch, const Shape& other, std::string& letters) {
  const Shape full = call.g.TypeOf(x).shape;
  const size_t axes = full.size() - 2;
  Shape kept;
  for (size_t i = 0; i < axes; ++i) {
    const size_t from_right = axes - i;
    const bool stretched =
        full[i].one() && from_right <= other.size() - 2 && !other[other.size() - 2 - from_right].one();
    if (stretched) continue;
    letters += static_cast<char>('p' + batch - from_right);
    kept.push_back(full[i]);
  }
  letters += matrix;
  kept.insert(kept.end(), full.end() - 2, full.end());
  return kept == full ? x : call.g.Reshape(x, kept);
}

/// [batch…] m×k · k×n with either operand transposed; the axes before them are broadcast.
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
  call.Output("c", call.g.Map(fmt::format("a * ({}) + b * ({})", call.Real("alpha"), call.Real("beta")),
                              {call.Wide(product), call.Wide(bias)}));
}

void BuildOuter(Call& call) {
  if (!call.Check(call.shape(0).size() == 1 && call.shape(1).size() == 1, "outer takes vectors")) return;
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

/// Only the part of a on one side of the diagonal takes part.
void BuildTriangular(Call& call) {
  const Value a = call.Input("a", call.shape(0));
  const Value b = call.Input("b", call.shape(1));
  if (!call.Check(call.shape(0).size() == 2, "a matrix has two dimensions")) return;
  const char* side =
      call.Flag("upper") ? "select(index(-1) >= index(-2), a, 0)" : "select(index(-1) <= index(-2), a, 0)";
  call.g.Output("c", call.g.Contract("mk,kn->mn", call.g.Map(side, {a}), b, std::nullopt, /*sparse=*/true));
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
  if (!call.Check(x.size() == 2 && w.size() == 2, "linear takes matrices", "x is M,K and weight N,K")) return;
  const Value input = call.Input("x", x);
  const Value product = call.g.Contract("mk,nk->mn", input, call.Input("weight", w));
  call.Output("y", call.g.Map("a + b", {call.Wide(product), call.Wide(call.Input("bias", {w[0]}))}));
}

bool IsLinear(Call& call) {
  return call.Check(call.shape(0).size() == 2 && call.shape(1).size() == 2, "linear takes matrices",
                    "x is M,K and weight N,K");
}

/// int8 weights with a scale per row: what weight-only quantised models compute.
void BuildQuantisedLinear(Call& call) {
  if (!IsLinear(call)) return;
  const Shape w = call.shape(1);
  const Value input = call.Wide(call.Input("x", call.shape(0)));
  const Value weight = call.g.Cast(call.Input("weight", w, DType::kInt8), ArithmeticType(call.dtype()));
  const Value product = call.g.Contract("mk,nk->mn", input, weight);
  call.Output("y", call.g.Map("a * b", {product, call.Wide(call.Input("scale", {w[0]}))}));
}

/// Both sides in `type`, with a scale per row of each or one for all of it; sums in `as`.
void BuildScaledLinear(Call& call, DType type, DType as) {
  if (!IsLinear(call) || !call.Check(IsFloat(call.dtype()), "scales and results are floats")) return;
  const Shape x = call.shape(0);
  const Shape w = call.shape(1);
  const Value input = call.Input("x", x, type);
  const Value weight = call.Input("weight", w, type);
  const Value product = call.g.Contract("mk,nk->mn", input, weight, as);
  const Extent rows = call.Flag("per_tensor") ? Extent(1) : x[0];
  const Extent columns = call.Flag("per_tensor") ? Extent(1) : w[0];
  const Value by_row = call.g.Reshape(call.Wide(call.Input("scale_x", {rows})), {rows, Extent(1)});
  const Value by_column = call.Wide(call.Input("scale_weight", {columns}));
  const Value wide = call.g.Cast(product, call.g.TypeOf(by_row).dtype);
  call.Output("y", call.g.Map("a * b * c", {wide, by_row, by_column}));
}

/// Weights of 4 bits, two in a byte, the lower one first, as 0 … 15 for -8 … 7; a scale per group of a row's weights.
void BuildInt4Linear(Call& call) {
  if (!IsLinear(call)) return;
  GraphBuilder& g = call.g;
  const Shape w = call.shape(1);
  const Extent group(call.Whole("group"));
  const auto groups = group.factor() > 0 ? w[1].Divided(group) : std::nullopt;
  const auto bytes = w[1].Divided(Extent(2));
  if (!call.Check(groups && bytes, fmt::format("group={} of a row of {}", group.factor(), w[1].ToString()),
                  "rows of even length that the groups divide"))
    return;
  const Value input = call.Wide(call.Input("x", call.shape(0)));
  const Value packed = g.Reshape(call.Input("weight", {w[0], *bytes}, DType::kUInt8), {w[0], *bytes, Extent(1)});
  const Value pairs = g.Add(Concat{2}, {g.Map("a & 15", {packed}), g.Map("a >> 4", {packed})});
  const Value whole = g.Cast(g.Reshape(pairs, {w[0], *groups, group}), g.TypeOf(input).dtype);
  const Value scale = g.Reshape(call.Wide(call.Input("scale", {w[0], *groups})), {w[0], *groups, Extent(1)});
  const Value weight = g.Reshape(g.Map("(a - 8) * b", {whole, scale}), w);
  call.Output("y", g.Contract("mk,nk->mn", input, weight));
}

/// To 8-bit floats: x / scale where that fits, else the largest.
void BuildQuantise(Call& call) {
  if (!call.Check(!call.shape().empty(), "quantize takes […, C]")) return;
  GraphBuilder& g = call.g;
  const Value x = call.Wide(call.Input("x", call.shape()));
  const Value top = g.Reduce(Combine::kMax, g.Map("abs(a)", {x}), {-1}, true);
  const Value scale = g.Map("maximum(a, 1e-12) / 448", {top});
  g.Output("y", g.Cast(g.Map("minimum(maximum(a / b, -448), 448)", {x, scale}), DType::kFloat8E4M3));
  g.Output("scale", scale);
}

/// softmax(q · kᵀ · scale) · v with query heads in groups that share a key head. `seen` is where a key counts, `scores`
/// what stands for the scaled product s; both may name b, the operand `extra`.
struct Seen {
  std::string seen = "true";
  std::string scores = "s";
  std::vector<Value> extra = {};  ///< broadcast to [batch, key heads, group, queries, keys]
};

struct Heads {
  Value query, key, value;
  Shape queries;  ///< as given
};

/// Operands of products are as narrow as the task, and summed wider: weights are rounded as tensor cores need it.
Value Factor(Call& call, Value x) { return call.g.Cast(x, call.dtype()); }

std::optional<Heads> AttentionInputs(Call& call) {
  const Shape q = call.shape(0);
  const Shape kv = call.shape(1);
  if (!call.Check(q.size() == 4 && kv.size() == 4, "attention takes [batch, heads, sequence, dim]"))
    return std::nullopt;
  const auto shared = q[1].Divided(kv[1]);  // query heads per key head
  if (!call.Check(shared && q[0] == kv[0] && q[3] == kv[3], "queries " + ToString(q) + " with keys " + ToString(kv),
                  "equal batch and dim; the key heads divide the query heads"))
    return std::nullopt;
  Heads heads;
  heads.query = call.g.Reshape(Factor(call, call.Input("q", q)), {q[0], kv[1], *shared, q[2], q[3]});
  heads.key = Factor(call, call.Input("k", kv));
  heads.value = Factor(call, call.Input("v", kv));
  heads.queries = q;
  return heads;
}

double ScaleOf(const Call& call, const Extent& dim) {
  return call.Real("scale") != 0 ? call.Real("scale") : 1 / std::sqrt(static_cast<double>(dim.factor()));
}

/// Equations of the two products: "…,…->…". Sparse: neither a key that is masked nor what its gradient meets is looked
/// at.
Value Attend(Call& call, const Heads& heads, const char* first, const char* second, const Seen& which) {
  GraphBuilder& g = call.g;
  const DType sums = ArithmeticType(call.dtype());
  const Value product = g.Contract(first, heads.query, heads.key, sums, true);
  std::vector<Value> operands = {product};
  operands.insert(operands.end(), which.extra.begin(), which.extra.end());
  const std::string scaled = fmt::format("let s = a * ({}) in ", ScaleOf(call, heads.queries.back()));
  const Value scores = g.Map(fmt::format("{}select({}, {}, -inf)", scaled, which.seen, which.scores), operands);
  const Value top = g.Reduce(Combine::kMax, scores, {-1}, true);
  const Value weights = g.Map("select(a == -inf, 0, exp(a - detach(b)))", {scores, top});  // also beside NaN
  const Value mixed = g.Contract(second, Factor(call, weights), heads.value, sums, true);
  return g.Map("a / b", {mixed, g.Reduce(Combine::kSum, weights, {-1}, true)});
}

void AttendToKeys(Call& call, const Heads& heads, const Seen& which) {
  const Value y = Attend(call, heads, "bhgsd,bhtd->bhgst", "bhgst,bhtd->bhgsd", which);
  call.Output("y", call.g.Reshape(y, heads.queries));
}

void BuildAttention(Call& call) {
  const auto heads = AttentionInputs(call);
  if (!heads) return;
  // Queries stand at the end of the keys: row i sees keys up to i + (keys - queries).
  Seen which;
  const std::string place = "index(-1) - index(-2) - (extent(-1) - extent(-2))";
  if (call.Flag("causal")) which.seen += " & " + place + " <= 0";
  if (call.Whole("window") > 0) which.seen += fmt::format(" & {} > -{}", place, call.Whole("window"));
  AttendToKeys(call, *heads, which);
}

/// A mask is added to the scores: one for all heads and sequences, or one for each sequence.
void BuildMaskedAttention(Call& call) {
  const auto heads = AttentionInputs(call);
  if (!heads) return;
  const Shape q = call.shape(0);
  const Extent keys = call.shape(1)[2];
  const Extent batch = call.Flag("per_sequence") ? q[0] : Extent(1);
  const Value mask = call.Wide(call.Input("mask", {batch, q[2], keys}));
  AttendToKeys(call, *heads,
               {.scores = "s + b", .extra = {call.g.Reshape(mask, {batch, Extent(1), Extent(1), q[2], keys})}});
}

/// The last key of each sequence that counts, of `keys`: places beyond the ends are clamped, as gather does.
Value LastKey(Call& call, const Extent& batch, const Extent& keys, Shape shape) {
  const Value last = call.Input("last", {batch}, DType::kInt64);
  const Value places = call.g.Map("index(-1)", {}, {keys});
  return call.g.Reshape(call.g.Add(Gather{0, 0}, {places, last}), std::move(shape));
}

void BuildVariableAttention(Call& call) {
  const auto heads = AttentionInputs(call);
  if (!heads) return;
  const Extent batch = call.shape(0)[0];
  const Extent one(1);
  const Value last = LastKey(call, batch, call.shape(1)[2], {batch, one, one, one, one});
  AttendToKeys(call, *heads, {.seen = "index(-1) <= b", .extra = {last}});
}

/// One query per sequence over keys that lie in pages anywhere in a pool.
void BuildPagedAttention(Call& call) {
  const Shape q = call.shape(0);      // B, H, D
  const Shape pool = call.shape(1);   // pages, page, G, D
  const Shape table = call.shape(2);  // B, pages of a sequence
  const bool ranks = q.size() == 3 && pool.size() == 4 && table.size() == 2 && call.shapes() == 3;
  const auto shared = ranks ? q[1].Divided(pool[2]) : std::nullopt;
  if (!call.Check(shared && q[2] == pool[3] && q[0] == table[0], "queries, pages and table do not go together",
                  "q is B,H,D, the pool PAGES,SIZE,G,D and the table B,N; G divides H"))
    return;
  GraphBuilder& g = call.g;
  const Extent keys = table[1] * pool[1];
  Heads heads;
  heads.queries = q;
  heads.query = g.Reshape(Factor(call, call.Input("q", q)), {q[0], pool[2], *shared, q[2]});
  const Value k = call.Input("k_pool", pool);
  const Value v = call.Input("v_pool", pool);
  const Value places = call.Input("table", table, DType::kInt64);
  const auto gathered = [&](Value from) {
    return Factor(call, g.Reshape(g.Add(Gather{0, 0}, {from, places}), {q[0], keys, pool[2], q[2]}));
  };
  heads.key = gathered(k);
  heads.value = gathered(v);
  const Extent one(1);
  const Value last = LastKey(call, q[0], keys, {q[0], one, one, one});
  const Value y =
      Attend(call, heads, "bhgd,bthd->bhgt", "bhgt,bthd->bhgd", {.seen = "index(-1) <= b", .extra = {last}});
  call.Output("y", g.Reshape(y, q));
}

/// Pairs turned by position · base^(-2i / dim): elements i and i + dim / 2 as in Llama, or 2i and 2i + 1.
void BuildRope(Call& call) {
  const Shape shape = call.shape();
  const auto half = shape.empty() ? std::nullopt : shape.back().Divided(Extent(2));
  if (!call.Check(shape.size() >= 2 && half, "rope takes […, sequence, dim] with an even dim") ||
      !call.Check(IsFloat(call.dtype()), "rope of integers"))
    return;
  GraphBuilder& g = call.g;
  const bool interleaved = call.Flag("interleaved");
  const auto axis = static_cast<int64_t>(shape.size()) - (interleaved ? 0 : 1);
  const int64_t dim = shape.back().factor();
  Value x = call.Wide(call.Input("x", shape));
  if (interleaved) {  // […, S, dim / 2, 2]
    Shape pairs(shape.begin(), shape.end() - 1);
    pairs.insert(pairs.end(), {*half, Extent(2)});
    x = g.Reshape(x, pairs);
  }
  const int64_t width = interleaved ? 1 : dim / 2;
  const Value first = g.Add(Slice{axis, 0, width, 1}, {x});
  const Value second = g.Add(Slice{axis, width, 2 * width, 1}, {x});
  const std::string angle =
      fmt::format("cast(index(-2), {0}) * exp2(cast(index(-1), {0}) * ({1}))", Name(g.TypeOf(x).dtype),
                  -2 * std::log2(call.Real("base")) / static_cast<double>(dim));
  const auto turned = [&](const std::string& body) {
    const Shape table = {shape[shape.size() - 2], *half};
    const Value y = g.Cast(g.Map(body + "(" + angle + ")", {}, table), g.TypeOf(x).dtype);
    return interleaved ? g.Reshape(y, {table[0], table[1], Extent(1)}) : y;
  };
  const Value c = turned("cos");
  const Value s = turned("sin");
  const Value y = g.Add(Concat{axis},
                        {g.Map("a * c - b * d", {first, second, c, s}), g.Map("b * c + a * d", {first, second, c, s})});
  call.Output("y", interleaved ? g.Reshape(y, shape) : y);
}

/// The first half of the last axis, through `body`, times the second: swiglu and geglu of one packed tensor.
void BuildGated(Call& call, const char* body) {
  const Shape shape = call.shape();
  const auto half = shape.empty() ? std::nullopt : shape.back().Divided(Extent(2));
  if (!call.Check(half.has_value(), "the last axis is two halves of even length")) return;
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  const Value x = call.Input("x", shape);
  const Value gate = call.Wide(call.g.Add(Slice{axis, 0, half->factor(), 1}, {x}));
  const Value up = call.Wide(call.g.Add(Slice{axis, half->factor(), 2 * half->factor(), 1}, {x}));
  call.Output("y", call.g.Map(body, {gate, up}));
}

/// Matrices and vectors.
void AddProducts(std::vector<LibraryOperator>& library) {
  const std::vector<Attribute> transposes = {{"transpose_a", false, "a is given as […, K, M]"},
                                             {"transpose_b", false, "b is given as […, N, K]"}};
  library.push_back({"batched_matmul",
                     "batched_matmul(a[…, M, K], b[…, K, N]) → c",
                     "product of matrices; the axes before them are broadcast",
                     "two shapes: --input-shape 8,128,256 8,256,512",
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
                     "two shapes: --input-shape 4096 4096",
                     {},
                     BuildOuter,
                     true,
                     {{3}, {5}}});
  library.push_back({"dot",
                     "dot(a[…, N], b[…, N]) → y",
                     "sum of products along the last axis",
                     "one shape: --input-shape 4096,4096",
                     {},
                     BuildDot,
                     true,
                     {{3, 5}}});
  library.push_back({"matvec",
                     "matvec(a[M, K], x[K]) → y",
                     "product of a matrix and a vector",
                     "one shape: --input-shape 4096,4096",
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
                     "the shape of b: --input-shape 4096,4096",
                     {},
                     BuildDiagonal,
                     true,
                     {{3, 5}}});
  library.push_back({"linear",
                     "linear(x[M, K], weight[N, K], bias[N]) → y",
                     "x · weightᵀ + bias",
                     "two shapes: --input-shape 128,256 512,256",
                     {},
                     BuildLinear,
                     true,
                     {{3, 4}, {5, 4}}});
}

/// Operands of few bits with their scales.
void AddQuantised(std::vector<LibraryOperator>& library) {
  library.push_back({"quantized_linear",
                     "quantized_linear(x[M, K], weight[N, K], scale[N]) → y",
                     "x · (int8 weight · scale)ᵀ",
                     "two shapes: --input-shape 128,256 512,256",
                     {},
                     BuildQuantisedLinear,
                     true,
                     {{3, 4}, {5, 4}}});
  const Attribute per_tensor = {"per_tensor", false, "one scale for x, one for the weight"};
  library.push_back({"int8_linear",
                     "int8_linear(x[M, K], weight[N, K], scale_x[M], scale_weight[N]) → y",
                     "x · weightᵀ of int8, summed in int32, times both scales",
                     "two shapes: --input-shape 128,256 512,256",
                     {per_tensor},
                     [](Call& call) { BuildScaledLinear(call, DType::kInt8, DType::kInt32); },
                     false,
                     {{3, 4}, {5, 4}}});
  library.push_back({"fp8_linear",
                     "fp8_linear(x[M, K], weight[N, K], scale_x[M], scale_weight[N]) → y",
                     "x · weightᵀ of float8_e4m3, summed in float32, times both scales",
                     "two shapes: --input-shape 128,256 512,256",
                     {per_tensor},
                     [](Call& call) { BuildScaledLinear(call, DType::kFloat8E4M3, DType::kFloat32); },
                     false,
                     {{3, 4}, {5, 4}}});
  library.push_back({"int4_linear",
                     "int4_linear(x[M, K], weight[N, K / 2], scale[N, K / group]) → y",
                     "x · (int4 weight · scale)ᵀ, two weights in a byte, a scale per group",
                     "x, and the weight as if unpacked: --input-shape 128,256 512,256",
                     {{"group", int64_t{32}, "weights that share a scale"}},
                     BuildInt4Linear,
                     true,
                     {{3, 64}, {5, 64}}});
  library.push_back({"quantize_fp8",
                     "quantize_fp8(x[…, C]) → y, scale",
                     "rows as float8_e4m3 with a scale each",
                     "one shape: --input-shape 4096,4096",
                     {},
                     BuildQuantise,
                     false,
                     {{3, 5}}});
}

void AddAttention(std::vector<LibraryOperator>& library) {
  library.push_back({"attention_gqa",
                     "attention_gqa(q[B, H, S, D], k[B, G, T, D], v[B, G, T, D]) → y",
                     "softmax(q · kᵀ · scale) · v; each key head serves H / G query heads",
                     "queries, and keys if other: --input-shape 1,32,128,64 1,8,1024,64",
                     {{"causal", false, "a query sees only keys up to its own place"},
                      {"window", int64_t{0}, "keys back that a query sees; 0 = all"},
                      {"scale", 0.0, "0 = 1 / sqrt(D)"}},
                     BuildAttention,
                     true,
                     {{1, 4, 3, 2}, {1, 2, 5, 2}}});
  const Attribute scale = {"scale", 0.0, "0 = 1 / sqrt(D)"};
  const char* with_keys = "queries, and keys if other: --input-shape 1,32,128,64 1,8,1024,64";
  library.push_back({"attention_masked",
                     "attention_masked(q[B, H, S, D], k[B, G, T, D], v[B, G, T, D], mask[1, S, T]) → y",
                     "softmax(q · kᵀ · scale + mask) · v",
                     with_keys,
                     {scale, {"per_sequence", false, "a mask for each sequence of the batch"}},
                     BuildMaskedAttention,
                     true,
                     {{1, 4, 3, 2}, {1, 2, 5, 2}}});
  library.push_back({"attention_varlen",
                     "attention_varlen(q[B, H, S, D], k[B, G, T, D], v[B, G, T, D], last[B]) → y",
                     "attention to the keys up to a last one for each sequence",
                     with_keys,
                     {scale},
                     BuildVariableAttention,
                     true,
                     {{2, 4, 3, 2}, {2, 2, 5, 2}}});
  library.push_back({"attention_paged",
                     "attention_paged(q[B, H, D], k_pool[P, SIZE, G, D], v_pool, table[B, N], last[B]) → y",
                     "one query per sequence over keys in pages, up to a last key: decoding",
                     "queries, pool and table: --input-shape 64,32,128 8192,16,8,128 64,128",
                     {scale},
                     BuildPagedAttention,
                     false,
                     {{2, 4, 2}, {6, 3, 2, 2}, {2, 2}}});
}

/// What stands around the products of a transformer.
void AddGatesAndRope(std::vector<LibraryOperator>& library) {
  const char* packed = "one shape, twice as wide as the result: --input-shape 4096,8192";
  library.push_back({"swiglu_packed",
                     "swiglu_packed(x[…, 2C]) → y[…, C]",
                     "silu of the first half times the second",
                     packed,
                     {},
                     [](Call& call) { BuildGated(call, "a * sigmoid(a) * b"); },
                     true,
                     {{3, 8}}});
  library.push_back({"geglu_packed",
                     "geglu_packed(x[…, 2C]) → y[…, C]",
                     "gelu of the first half times the second",
                     packed,
                     {},
                     [](Call& call) { BuildGated(call, "0.5 * a * (1 + erf(a * 0.7071067811865476)) * b"); },
                     true,
                     {{3, 8}}});
  library.push_back({"rope",
                     "rope(x[…, S, D]) → y",
                     "rotary position embedding",
                     "one shape: --input-shape 1,32,1024,128",
                     {{"base", 10000.0, "of the angles"}, {"interleaved", false, "pairs of neighbours, not of halves"}},
                     BuildRope,
                     true,
                     {{2, 3, 4}}});
}

}  // namespace

void AddContractions(std::vector<LibraryOperator>& library) {
  AddProducts(library);
  AddQuantised(library);
  AddAttention(library);
  AddGatesAndRope(library);
}

}  // namespace atunner::graph
