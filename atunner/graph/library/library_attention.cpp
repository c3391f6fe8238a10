// Attention, rotary embedding and gated activations.
#include <fmt/format.h>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

/// softmax(q · kᵀ · scale) · v with query heads in groups that share a key head. `seen` is the
/// condition under which a key counts and `scores` the expression of the score over the scaled
/// product s; both may use b, the operand `extra`.
struct Seen {
  std::string seen = "true";
  std::string scores = "s";
  bool may_be_empty = false;      ///< a query may see no key: its row is zero
  std::vector<Value> extra = {};  ///< broadcast to [batch, key heads, group, queries, keys]
};

struct Heads {
  Value query, key, value;
  Shape queries;  ///< the shape of q in the request
};

/// Operands of products have the task's type and products are summed in float32, so that the
/// weights are rounded as tensor cores need them.
Value Factor(Call& call, Value x) { return call.g.Cast(x, call.dtype()); }

std::optional<Heads> AttentionInputs(Call& call) {
  const Shape q = call.shape(0);
  const Shape kv = call.shape(1);
  if (!call.Check(q.size() == 4 && kv.size() == 4, "attention takes [batch, heads, sequence, dim]"))
    return std::nullopt;
  const auto shared = q[1].Divided(kv[1]);  // query heads per key head
  if (!call.Check(shared && q[0] == kv[0] && q[3] == kv[3],
                  "queries " + ToString(q) + " with keys " + ToString(kv),
                  "equal batch and dim; the key heads divide the query heads"))
    return std::nullopt;
  Heads heads;
  heads.query = call.g.Reshape(Factor(call, call.Input("q", q)),
                               {q[0], kv[1], *shared, q[2], q[3]});
  heads.key = Factor(call, call.Input("k", kv));
  heads.value = Factor(call, call.Input("v", kv));
  heads.queries = q;
  return heads;
}

double ScaleOf(const Call& call, const Extent& dim) {
  return call.Real("scale") != 0 ? call.Real("scale")
                                 : 1 / std::sqrt(static_cast<double>(dim.factor()));
}

/// The equations of the two products. The second is sparse, so that a NaN in a masked key has no
/// effect, in gradients too.
Value Attend(Call& call, const Heads& heads, const char* first, const char* second,
             const Seen& which) {
  GraphBuilder& g = call.g;
  const DType sums = ArithmeticType(call.dtype());
  const Value product = g.Contract(first, heads.query, heads.key, sums, true);
  std::vector<Value> operands = {product};
  operands.insert(operands.end(), which.extra.begin(), which.extra.end());
  const std::string scaled = fmt::format("let s = a * ({}) in ",
                                         ScaleOf(call, heads.queries.back()));
  const Value scores = g.Map(
      fmt::format("{}select({}, {}, -inf)", scaled, which.seen, which.scores), operands);
  const Value top = g.Reduce(Combine::kMax, scores, {-1}, true);
  // Masked keys have the weight 0 even if another score of the row is NaN.
  const Value weights = g.Map("select(a == -inf, 0, exp(a - detach(b)))", {scores, top});
  const Value mixed = g.Contract(second, Factor(call, weights), heads.value, sums, true);
  // A row that sees no key is zero, as in PyTorch since 2.5.
  return g.Map(which.may_be_empty ? "select(b == 0, 0, a / b)" : "a / b",
               {mixed, g.Reduce(Combine::kSum, weights, {-1}, true)});
}

void AttendToKeys(Call& call, const Heads& heads, const Seen& which) {
  const Value y = Attend(call, heads, "bhgsd,bhtd->bhgst", "bhgst,bhtd->bhgsd", which);
  call.Output("y", call.g.Reshape(y, heads.queries));
}

void BuildAttention(Call& call) {
  const auto heads = AttentionInputs(call);
  if (!heads) return;
  // The queries are the last ones of the sequence: row i sees keys up to i + (keys - queries).
  Seen which;
  const std::string place = "index(-1) - index(-2) - (extent(-1) - extent(-2))";
  if (call.Flag("causal")) which.seen += " & " + place + " <= 0";
  const int64_t window = call.Whole("window");
  if (!call.Check(window >= 0, fmt::format("window={}", window), "keys back, or 0 for all")) return;
  if (window > 0) which.seen += fmt::format(" & {} > -{}", place, window);
  AttendToKeys(call, *heads, which);
}

/// Attention with a mask that is added to the scores: one mask for all, or one per sequence.
void BuildMaskedAttention(Call& call) {
  const auto heads = AttentionInputs(call);
  if (!heads) return;
  const Shape q = call.shape(0);
  const Extent keys = call.shape(1)[2];
  const Extent batch = call.Flag("per_sequence") ? q[0] : Extent(1);
  const Value mask = call.Wide(call.Input("mask", {batch, q[2], keys}));
  AttendToKeys(call, *heads,
               {.scores = "s + b",
                .may_be_empty = true,
                .extra = {call.g.Reshape(mask, {batch, Extent(1), Extent(1), q[2], keys})}});
}

/// Attention with the index of the last key of each sequence, clamped to the range of `keys`.
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

/// Decoding: one query per sequence, with keys and values in pages of a pool.
void BuildPagedAttention(Call& call) {
  const Shape q = call.shape(0);      // B, H, D
  const Shape pool = call.shape(1);   // pages, page, G, D
  const Shape table = call.shape(2);  // B, pages of a sequence
  const bool ranks = q.size() == 3 && pool.size() == 4 && table.size() == 2 && call.shapes() == 3;
  const auto shared = ranks ? q[1].Divided(pool[2]) : std::nullopt;
  if (!call.Check(shared && q[2] == pool[3] && q[0] == table[0],
                  "queries, pages and table do not go together",
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
    return Factor(call,
                  g.Reshape(g.Add(Gather{0, 0}, {from, places}), {q[0], keys, pool[2], q[2]}));
  };
  heads.key = gathered(k);
  heads.value = gathered(v);
  const Extent one(1);
  const Value last = LastKey(call, q[0], keys, {q[0], one, one, one});
  const Value y = Attend(call, heads, "bhgd,bthd->bhgt", "bhgt,bthd->bhgd",
                         {.seen = "index(-1) <= b", .extra = {last}});
  call.Output("y", g.Reshape(y, q));
}

/// Rotary embedding: pair i is rotated by position · base^(-2i / dim). Pairs are the elements i and
/// i + dim / 2, as in Llama, or 2i and 2i + 1 (`interleaved`).
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
  const Value other = g.Add(Concat{axis}, {g.Add(Slice{axis, width, 2 * width, 1}, {x}),
                                           g.Add(Slice{axis, 0, width, 1}, {x})});
  // One expression for both halves computes one sine and one cosine per element; with a concat of
  // two halves a kernel would compute both for every element.
  const Shape table = {shape[shape.size() - 2], interleaved ? *half : shape.back()};
  const std::string type(Name(g.TypeOf(x).dtype));
  // A gradient computes elements outside of their half and discards them; abs keeps the number of
  // their pair small.
  const std::string place = fmt::format("cast(index(-1), {})", type);
  const std::string pair = interleaved ? place
                                       : fmt::format("abs(select(index(-1) < {0}, {1}, {1} - {0}))",
                                                     width, place);
  const std::string angle = fmt::format(
      "cast(index(-2), {}) * exp2({} * ({}))", type, pair,
      -2 * std::log2(call.Real("base")) / static_cast<double>(dim));
  const auto turned = [&](const std::string& body) {
    const Value y = g.Cast(g.Map(body + "(" + angle + ")", {}, table), g.TypeOf(x).dtype);
    return interleaved ? g.Reshape(y, {table[0], table[1], Extent(1)}) : y;
  };
  const Value y = g.Map(fmt::format("a * c + b * select(index(-1) < {}, -d, d)", width),
                        {x, other, turned("cos"), turned("sin")});
  call.Output("y", interleaved ? g.Reshape(y, shape) : y);
}

/// body(first half of the last axis) · (second half): swiglu and geglu of one packed tensor.
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

void AddAttention(std::vector<LibraryOperator>& library) {
  library.push_back({"attention_gqa",
                     "attention_gqa(q[B, H, S, D], k[B, G, T, D], v[B, G, T, D]) → y",
                     "softmax(q · kᵀ · scale) · v; each key head serves H / G query heads",
                     "queries, and keys if other: request.shapes 1,32,128,64 1,8,1024,64",
                     {{"causal", false, "a query sees no later keys"},
                      {"window", int64_t{0}, "number of keys that a query sees; 0 = all"},
                      {"scale", 0.0, "0 = 1 / sqrt(D)"}},
                     BuildAttention,
                     true,
                     {{1, 4, 3, 2}, {1, 2, 5, 2}}});
  const Attribute scale = {"scale", 0.0, "0 = 1 / sqrt(D)"};
  const char* with_keys = "queries, and keys if other: request.shapes 1,32,128,64 1,8,1024,64";
  library.push_back(
      {"attention_masked",
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
  library.push_back(
      {"attention_paged",
       "attention_paged(q[B, H, D], k_pool[P, SIZE, G, D], v_pool, table[B, N], last[B]) → y",
       "decoding: one query per sequence, keys in pages up to a last one",
       "queries, pool and table: request.shapes 64,32,128 8192,16,8,128 64,128",
       {scale},
       BuildPagedAttention,
       false,
       {{2, 4, 2}, {6, 3, 2, 2}, {2, 2}}});
}

/// Gated activations and rotary embedding.
void AddGatesAndRope(std::vector<LibraryOperator>& library) {
  const char* packed = "one shape, twice as wide as the result: request.shapes 4096,8192";
  library.push_back({"swiglu_packed",
                     "swiglu_packed(x[…, 2C]) → y[…, C]",
                     "silu of the first half times the second",
                     packed,
                     {},
                     [](Call& call) { BuildGated(call, "a * sigmoid(a) * b"); },
                     true,
                     {{3, 8}}});
  library.push_back(
      {"geglu_packed",
       "geglu_packed(x[…, 2C]) → y[…, C]",
       "gelu of the first half times the second",
       packed,
       {},
       [](Call& call) { BuildGated(call, "0.5 * a * (1 + erf(a * 0.7071067811865476)) * b"); },
       true,
       {{3, 8}}});
  library.push_back(
      {"rope",
       "rope(x[…, S, D]) → y",
       "rotary position embedding",
       "one shape: request.shapes 1,32,1024,128",
       {{"base", 10000.0, "of the angles"},
        {"interleaved", false, "pairs are neighbours, not the elements of two halves"}},
       BuildRope,
       true,
       {{2, 3, 4}}});
}

}  // namespace

void AddTransformerParts(std::vector<LibraryOperator>& library) {
  AddAttention(library);
  AddGatesAndRope(library);
}

}  // namespace atunner::graph
