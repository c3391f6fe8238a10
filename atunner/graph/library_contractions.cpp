// Products of matrices, attention, and what goes with them.
#include <fmt/format.h>

#include <cmath>

#include "atunner/graph/library.h"

namespace atunner::graph {
namespace {

const char* kTwo = "two shapes: --input-shape 128,256 256,512";

/// [batch…] m×k · k×n with either operand transposed.
void BuildMatmul(Call& call) {
  const Shape a = call.shape(0);
  const Shape b = call.shape(1);
  const bool matrices = a.size() >= 2 && b.size() >= 2 && (b.size() == 2 || a.size() == b.size());
  if (!call.Check(matrices && a.size() <= 8,
                  "matmul of shapes of ranks " + std::to_string(a.size()) + " and " + std::to_string(b.size()),
                  "matrices, with the same batch axes before them or none on the right"))
    return;
  const std::string batch = std::string("uvwxyz").substr(0, a.size() - 2);
  const std::string left = batch + (call.Flag("transpose_a") ? "km" : "mk");
  const std::string right = (b.size() == 2 ? "" : batch) + (call.Flag("transpose_b") ? "nk" : "kn");
  const Value x = call.Input("a", a);
  const Value y = call.Input("b", b);
  call.g.Output("c", call.g.Contract(left + "," + right + "->" + batch + "mn", x, y));
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
  call.g.Output("c", call.g.Contract("mk,kn->mn", call.g.Map(side, {a}), b));
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

/// int8 weights with a scale per row: what weight-only quantised models compute.
void BuildQuantisedLinear(Call& call) {
  const Shape x = call.shape(0);
  const Shape w = call.shape(1);
  if (!call.Check(x.size() == 2 && w.size() == 2, "linear takes matrices", "x is M,K and weight N,K")) return;
  const Value input = call.Wide(call.Input("x", x));
  const Value weight = call.g.Cast(call.Input("weight", w, DType::kInt8), ArithmeticType(call.dtype()));
  const Value product = call.g.Contract("mk,nk->mn", input, weight);
  call.Output("y", call.g.Map("a * b", {product, call.Wide(call.Input("scale", {w[0]}))}));
}

void BuildAttention(Call& call) {
  const Shape q = call.shape(0);
  const Shape kv = call.shape(1);
  const bool ranks = q.size() == 4 && kv.size() == 4;
  if (!call.Check(ranks, "attention takes [batch, heads, sequence, dim]")) return;
  const auto shared = q[1].Divided(kv[1]);  // query heads per key head
  if (!call.Check(shared && q[0] == kv[0] && q[3] == kv[3], "queries " + ToString(q) + " with keys " + ToString(kv),
                  "equal batch and dim; the key heads divide the query heads"))
    return;
  GraphBuilder& g = call.g;
  const Shape grouped = {q[0], kv[1], *shared, q[2], q[3]};
  const Value query = g.Reshape(call.Wide(call.Input("q", q)), grouped);
  const Value key = call.Wide(call.Input("k", kv));
  const Value value = call.Wide(call.Input("v", kv));
  const double scale = call.Real("scale") != 0 ? call.Real("scale") : 1 / std::sqrt(static_cast<double>(q[3].factor()));
  // Queries stand at the end of the keys: row i sees keys up to i + (keys - queries).
  std::string seen = "true";
  const std::string place = "index(-1) - index(-2) - (extent(-1) - extent(-2))";
  if (call.Flag("causal")) seen += " & " + place + " <= 0";
  if (call.Whole("window") > 0) seen += fmt::format(" & {} > -{}", place, call.Whole("window"));
  const Value product = g.Contract("bhgsd,bhtd->bhgst", query, key);
  const Value scores = g.Map(fmt::format("select({}, a * ({}), -inf)", seen, scale), {product});
  const Value top = g.Reduce(Combine::kMax, scores, {-1}, true);
  const Value weights = g.Map("exp(a - detach(b))", {scores, top});
  const Value mixed = g.Contract("bhgst,bhtd->bhgsd", weights, value);
  const Value y = g.Map("a / b", {mixed, g.Reduce(Combine::kSum, weights, {-1}, true)});
  call.Output("y", g.Reshape(y, q));
}

/// Pairs (i, i + dim / 2) turned by position · base^(-2i / dim), as in Llama.
void BuildRope(Call& call) {
  const Shape shape = call.shape();
  const auto half = shape.empty() ? std::nullopt : shape.back().Divided(Extent(2));
  if (!call.Check(shape.size() >= 2 && half, "rope takes […, sequence, dim] with an even dim")) return;
  GraphBuilder& g = call.g;
  const Value x = call.Wide(call.Input("x", shape));
  const int64_t dim = shape.back().factor();
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  const Value first = g.Add(Slice{axis, 0, dim / 2, 1}, {x});
  const Value second = g.Add(Slice{axis, dim / 2, dim, 1}, {x});
  const std::string angle = fmt::format("cast(index(-2), float32) * exp2(cast(index(-1), float32) * ({}))",
                                        -2 * std::log2(call.Real("base")) / static_cast<double>(dim));
  const auto turned = [&](const std::string& body) {
    const Shape table = {shape[shape.size() - 2], *half};
    return g.Cast(g.Map(body + "(" + angle + ")", {}, table), g.TypeOf(x).dtype);
  };
  const Value c = turned("cos");
  const Value s = turned("sin");
  call.Output("y", g.Add(Concat{axis}, {g.Map("a * c - b * d", {first, second, c, s}),
                                        g.Map("b * c + a * d", {first, second, c, s})}));
}

}  // namespace

void AddContractions(std::vector<LibraryOperator>& library) {
  const std::vector<Attribute> transposes = {{"transpose_a", false, "a is given as […, K, M]"},
                                             {"transpose_b", false, "b is given as […, N, K]"}};
  library.push_back({"batched_matmul",
                     "batched_matmul(a[…, M, K], b[…, K, N]) → c",
                     "product of matrices, batch by batch",
                     "two shapes: --input-shape 8,128,256 8,256,512",
                     transposes,
                     BuildMatmul,
                     true,
                     {{2, 3, 4}, {2, 4, 5}}});
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
  library.push_back({"quantized_linear",
                     "quantized_linear(x[M, K], weight[N, K], scale[N]) → y",
                     "x · (int8 weight · scale)ᵀ",
                     "two shapes: --input-shape 128,256 512,256",
                     {},
                     BuildQuantisedLinear,
                     true,
                     {{3, 4}, {5, 4}}});
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
  library.push_back({"rope",
                     "rope(x[…, S, D]) → y",
                     "rotary position embedding by halves",
                     "one shape: --input-shape 1,32,1024,128",
                     {{"base", 10000.0, "of the angles"}},
                     BuildRope,
                     true,
                     {{2, 3, 4}}});
}

}  // namespace atunner::graph
