// Attention, rotary embeddings, and the states that decoders carry from step to step.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostSteps = 4096;  ///< of a recurrence, which is unrolled

/// [B, L, heads · D] as [B, heads, L, D].
Value Heads(OnnxCall& call, Value x, int64_t heads) {
  if (!call.Check(call.Rank(x) == 3 && heads >= 1 && call.Size(x, 2) % heads == 0,
                  "the last axis is no whole number of heads"))
    return x;
  const Value split = call.Reshape(
      x, {call.Size(x, 0), call.Size(x, 1), heads, call.Size(x, 2) / heads});
  return call.g.Transpose(split, {0, 2, 1, 3});
}

/// [B, heads, L, D] as [B, L, heads · D].
Value Joined(OnnxCall& call, Value x) {
  const Value turned = call.g.Transpose(x, {0, 2, 1, 3});
  return call.Reshape(turned,
                      {call.Size(x, 0), call.Size(x, 2), call.Size(x, 1) * call.Size(x, 3)});
}

/// The operands of Attention as [B, heads, length, D], keys and values behind the past ones.
struct Operands {
  Value q, k, v;
  bool flat = false;  ///< the model's tensors have three axes
  int64_t past = 0;   ///< keys before those of this call
};

std::optional<Operands> OperandsOf(OnnxCall& call) {
  Operands all{call.In(0), call.In(1), call.In(2)};
  all.flat = call.Rank(all.q) == 3;
  if (all.flat) {
    const int64_t heads = call.Whole("kv_num_heads", 0);
    all.q = Heads(call, all.q, call.Whole("q_num_heads", 0));
    all.k = Heads(call, all.k, heads);
    all.v = Heads(call, all.v, heads);
  }
  if (call.Has(4)) {
    all.past = call.Size(call.In(4), 2);
    all.k = call.g.Add(graph::Concat{2}, {call.In(4), all.k});
    all.v = call.g.Add(graph::Concat{2}, {call.In(5), all.v});
  }
  const bool fits = call.g.ok() && call.Rank(all.q) == 4 && call.Rank(all.k) == 4 &&
                    call.Size(all.q, 1) % call.Size(all.k, 1) == 0;
  if (!call.Check(fits, "attention of these ranks and heads")) return std::nullopt;
  return all;
}

/// A mask of fewer keys than there are masks the others.
Value MaskOfAllKeys(OnnxCall& call, Value mask, int64_t keys) {
  const int64_t rank = call.Rank(mask);
  const int64_t missing = keys - call.Size(mask, rank - 1);
  if (missing <= 0 || call.Size(mask, rank - 1) == 1) return mask;
  Integers sizes = call.SizesOf(mask);
  sizes.back() = missing;
  const DType type = call.TypeOf(mask);
  const Value rest = call.Filled(sizes, type, type == DType::kBool ? 0 : -kInfinity);
  return call.g.Add(graph::Concat{rank - 1}, {mask, rest});
}

/// A number for each batch, before scores [B, heads, queries, keys].
Value OfBatches(OnnxCall& call, size_t input) {
  const Value given = call.g.Cast(call.In(input), DType::kInt64);
  return call.Reshape(given, {CountOf(call.SizesOf(given)), 1, 1, 1});
}

Value Masked(OnnxCall& call, Value scores, int64_t past) {
  const int64_t queries = call.Size(scores, 2);
  if (call.Has(3)) {
    const Value mask = MaskOfAllKeys(call, call.In(3), call.Size(scores, 3));
    scores = call.TypeOf(mask) == DType::kBool
                 ? call.g.Map("select(b, a, -inf)", {scores, mask})
                 : call.g.Map("a + b", {scores, call.g.Cast(mask, call.TypeOf(scores))});
  }
  const bool counted = call.Has(6);  // the number of keys that count, of each batch
  if (call.Whole("is_causal", 0) != 0 && counted && !call.Has(4))
    scores = call.g.Map(fmt::format("select(index(-1) <= index(-2) + b - {}, a, -inf)", queries),
                        {scores, OfBatches(call, 6)});
  else if (call.Whole("is_causal", 0) != 0)
    scores = call.g.Map(fmt::format("select(index(-1) <= index(-2) + {}, a, -inf)", past),
                        {scores});
  if (counted) scores = call.g.Map("select(index(-1) < b, a, -inf)", {scores, OfBatches(call, 6)});
  return scores;
}

/// Queries in groups of those that share a head of keys: [B, heads, …] and [B, kv, group, …].
Value Grouped(OnnxCall& call, Value x, int64_t kv) {
  const Integers sizes = call.SizesOf(x);
  return call.Reshape(x, {sizes[0], kv, sizes[1] / kv, sizes[2], sizes[3]});
}
Value Ungrouped(OnnxCall& call, Value x) {
  const Integers sizes = call.SizesOf(x);
  return call.Reshape(x, {sizes[0], sizes[1] * sizes[2], sizes[3], sizes[4]});
}

/// A product of [B, heads, …] with [B, kv, …], by the equation of one group of heads.
Value ProductOfHeads(OnnxCall& call, const char* equation, const char* grouped, Value a, Value b) {
  const int64_t kv = call.Size(b, 1);
  if (kv == call.Size(a, 1)) return call.g.Contract(equation, a, b);
  return Ungrouped(call, call.g.Contract(grouped, Grouped(call, a, kv), b));
}

/// softmax(q · kᵀ · scale) · v where the library's attention computes just that.
std::optional<Value> PlainAttention(OnnxCall& call, const Operands& all, double scale) {
  const bool causal = call.Whole("is_causal", 0) != 0;
  const Integers keys = call.SizesOf(all.k);
  const bool last_queries = call.Size(all.q, 2) + all.past == keys[2];
  if (call.Has(3) || call.Has(6) || call.UsesOutput(3) || call.Real("softcap", 0) != 0 ||
      call.SizesOf(all.v) != keys || keys[0] != call.Size(all.q, 0) ||
      keys[3] != call.Size(all.q, 3) || (causal && !last_queries))
    return std::nullopt;
  return call.Library("attention_gqa", call.TypeOf(all.q), {all.q, all.k, all.v},
                      {{"causal", causal}, {"scale", scale}}, 2);
}

Value Scaled(OnnxCall& call, Value x, double factor) {
  return call.g.Map(fmt::format("a * {}", factor), {x});
}

/// [B, T, heads · D] in float32 at one step, as [B, heads, D].
Value AtStep(OnnxCall& call, Value x, int64_t heads, int64_t step) {
  const Value at = call.g.Cast(call.SliceOf(x, 1, step, step + 1), DType::kFloat32);
  return call.Reshape(at, {call.Size(x, 0), heads, call.Size(x, 2) / heads});
}

}  // namespace

/// Results: y, the keys and values with the past ones, and the scores (before the softcap, with
/// it, with the mask, or after the softmax, by `qk_matmul_output_mode`).
std::vector<Value> Attention(OnnxCall& call, std::string_view) {
  const auto all = OperandsOf(call);
  if (!all) return {};
  const DType type = call.TypeOf(all->q);
  const double scale = call.HasAttribute("scale")
                           ? call.Real("scale", 1)
                           : 1 / std::sqrt(static_cast<double>(call.Size(all->q, 3)));
  const auto finished = [&](Value y) { return all->flat ? Joined(call, y) : y; };
  if (const auto y = PlainAttention(call, *all, scale)) return {finished(*y), all->k, all->v};
  Value scores = call.Wide(
      ProductOfHeads(call, "bhqd,bhkd->bhqk", "bhgqd,bhkd->bhgqk", all->q, all->k));
  scores = Scaled(call, scores, scale);
  std::vector<Value> stages{scores};
  const double cap = call.Real("softcap", 0);
  if (cap > 0) scores = call.g.Map(fmt::format("tanh(a / {0}) * {0}", cap), {scores});
  stages.push_back(scores);
  scores = Masked(call, scores, all->past);
  stages.push_back(scores);
  const Value weights = call.Library("softmax", call.TypeOf(scores), {scores});
  stages.push_back(weights);
  const int64_t stage = call.Whole("qk_matmul_output_mode", 0);
  if (!call.Check(stage >= 0 && stage <= 3, "an unknown qk_matmul_output_mode")) return {};
  const Value y = ProductOfHeads(call, "bhqk,bhkd->bhqd", "bhgqk,bhkd->bhgqd",
                                 call.g.Cast(weights, type), all->v);
  return {finished(y), all->k, all->v, call.g.Cast(stages[static_cast<size_t>(stage)], type)};
}

/// Pairs of elements turned by the angles of their positions; pairs are neighbours or lie half a
/// head apart. Elements behind `rotary_embedding_dim` stay.
std::vector<Value> RotaryEmbedding(OnnxCall& call, std::string_view) {
  const Value given = call.In(0);
  const bool flat = call.Rank(given) == 3;
  const Value x = flat ? Heads(call, given, call.Whole("num_heads", 0)) : given;
  if (!call.g.ok() || !call.Check(call.Rank(x) == 4, "rotary embedding of this rank")) return {};
  const int64_t all = call.Size(x, 3);
  const int64_t stated = call.Whole("rotary_embedding_dim", 0);
  const int64_t turned = stated == 0 ? all : stated;
  if (!call.Check(turned >= 2 && turned % 2 == 0 && turned <= all, "an odd or too large dimension"))
    return {};
  const auto angles = [&](size_t input) {
    Value table = call.In(input);
    if (call.Has(3))
      table = call.g.Add(graph::Gather{0, 0}, {table, call.g.Cast(call.In(3), DType::kInt64)});
    const Integers sizes = call.SizesOf(table);
    return sizes.size() == 3 ? call.Reshape(table, {sizes[0], 1, sizes[1], sizes[2]}) : table;
  };
  const bool neighbours = call.Whole("interleaved", 0) != 0;
  const Value first = neighbours ? call.SliceOf(x, 3, 0, turned, 2)
                                 : call.SliceOf(x, 3, 0, turned / 2);
  const Value second = neighbours ? call.SliceOf(x, 3, 1, turned, 2)
                                  : call.SliceOf(x, 3, turned / 2, turned);
  const std::vector<Value> operands{first, second, angles(1), angles(2)};
  Value low = call.g.Map("c * a - d * b", operands);
  Value high = call.g.Map("d * a + c * b", operands);
  Integers sizes = call.SizesOf(x);
  if (neighbours) {
    const Integers pairs{sizes[0], sizes[1], sizes[2], turned / 2, 1};
    low = call.Reshape(low, pairs);
    high = call.Reshape(high, pairs);
  }
  Value y = call.g.Add(graph::Concat{neighbours ? 4 : 3}, {low, high});
  sizes[3] = turned;
  if (neighbours) y = call.Reshape(y, sizes);
  if (turned < all) y = call.g.Add(graph::Concat{3}, {y, call.SliceOf(x, 3, turned, all)});
  return {flat ? Joined(call, y) : y};
}

/// A state of [keys, values] for each head, which each step decays, corrects and adds to
/// (`update_rule`); a query reads from it. Unrolled.
std::vector<Value> LinearAttention(OnnxCall& call, std::string_view) {
  const Value q = call.In(0), k = call.In(1), v = call.In(2);
  const int64_t heads = call.Whole("q_num_heads", 0), kv = call.Whole("kv_num_heads", 0);
  if (!call.Check(call.Rank(q) == 3 && call.Rank(k) == 3 && call.Rank(v) == 3 && kv >= 1 &&
                      heads >= kv && heads % kv == 0 && call.Size(q, 2) % heads == 0 &&
                      call.Size(k, 2) % kv == 0 && call.Size(v, 2) % kv == 0 &&
                      call.Size(q, 1) <= kMostSteps,
                  "linear attention of these sizes and heads"))
    return {};
  const int64_t batch = call.Size(q, 0), steps = call.Size(q, 1);
  const int64_t keys = call.Size(q, 2) / heads, values = call.Size(v, 2) / kv;
  const std::string rule = call.Text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool corrected = rule == "delta" || rule == "gated_delta";
  if (!call.Check(gated || corrected || rule == "linear", "an unknown update_rule")) return {};
  const double stated = call.Real("scale", 0);
  const double scale = stated != 0 ? stated : 1 / std::sqrt(static_cast<double>(keys));
  Value state = call.Has(3) ? call.g.Cast(call.In(3), DType::kFloat32)
                            : call.Filled({batch, kv, keys, values}, DType::kFloat32, 0);
  std::vector<Value> read;
  for (int64_t step = 0; step < steps && call.g.ok(); ++step) {
    const Value key = AtStep(call, k, kv, step);
    Value value = AtStep(call, v, kv, step);
    if (gated) {
      const Value decay = AtStep(call, call.In(4), kv, step);
      state = call.g.Map("a * exp(b)",
                         {state, call.Reshape(decay, {batch, kv, call.Size(decay, 2), 1})});
    }
    if (corrected) {
      const Value erased = call.Has(6)
                               ? call.g.Map("a * b", {key, AtStep(call, call.In(6), kv, step)})
                               : key;
      const Value known = call.g.Contract("bhdm,bhd->bhm", state, erased);
      const Value beta = AtStep(call, call.In(5), call.Size(call.In(5), 2), step);
      value = call.g.Map("c * (a - b)", {value, known, beta});
    }
    state = call.g.Map("a + b * c", {state, call.Reshape(key, {batch, kv, keys, 1}),
                                     call.Reshape(value, {batch, kv, 1, values})});
    const Value query = call.Reshape(AtStep(call, q, heads, step), {batch, kv, heads / kv, keys});
    const Value y = Scaled(call, call.g.Contract("bhgd,bhdm->bhgm", query, state), scale);
    read.push_back(call.Reshape(y, {batch, 1, heads * values}));
  }
  const Value y = read.size() == 1 ? read[0] : call.g.Add(graph::Concat{1}, read);
  const DType kept = call.TypeOf(call.Has(3) ? call.In(3) : q);
  return {call.g.Cast(y, call.TypeOf(q)), call.g.Cast(state, kept)};
}

/// A depthwise convolution that sees the past only: elements before the first are those of the
/// state, or 0. The second result is the state of the next call.
std::vector<Value> CausalConvWithState(OnnxCall& call, std::string_view) {
  const Value x = call.In(0), w = call.In(1);
  if (!call.Check(call.Rank(x) == 3 && call.Rank(w) == 3, "a convolution with one axis")) return {};
  const int64_t before = call.Size(w, 2) - 1, channels = call.Size(x, 1);
  Value all = x;
  if (before > 0) {
    const Value past = call.Has(3)
                           ? call.In(3)
                           : call.Filled({call.Size(x, 0), channels, before}, call.TypeOf(x), 0);
    all = call.g.Add(graph::Concat{2}, {past, x});
  }
  const auto made = call.Aten(
      "aten.conv1d.default",
      {{"input", call.Ref(all)}, {"weight", call.Ref(w)}, {"groups", channels}});
  if (made.empty()) return {};
  Value y = made[0];
  if (call.Has(2)) y = call.g.Map("a + b", {y, call.Reshape(call.In(2), {channels, 1})});
  if (call.Text("activation", "none") != "none") y = call.g.Map("a * sigmoid(a)", {y});
  if (before == 0) return {y};
  return {y, call.SliceOf(all, 2, call.Size(all, 2) - before, call.Size(all, 2))};
}

/// Writes the update into a cache from `write_indices` of each batch on; `circular` goes on at the
/// cache's beginning.
std::vector<Value> TensorScatter(OnnxCall& call, std::string_view) {
  const Value past = call.In(0);
  const Value update = call.In(1);
  const int64_t axis = call.Axis(call.Whole("axis", -2), call.Rank(past));
  if (!call.Check(axis >= 1 && call.Rank(update) == call.Rank(past), "a cache of batches"))
    return {};
  const Integers sizes = call.SizesOf(past);
  const int64_t length = sizes[static_cast<size_t>(axis)];
  const int64_t before = CountOf({sizes.begin() + 1, sizes.begin() + axis});
  const int64_t behind = CountOf({sizes.begin() + axis + 1, sizes.end()});
  const int64_t written = call.Size(update, axis);
  const Value start = call.Has(2)
                          ? call.Reshape(call.g.Cast(call.In(2), DType::kInt64), {sizes[0], 1})
                          : call.Filled({sizes[0], 1}, DType::kInt64, 0);
  // The place in the update that each place of the cache takes; some are beyond it.
  const bool circular = call.Text("mode", "linear") == "circular";
  const Value places = call.g.Map(
      circular ? fmt::format("mod(index(-1) - a, {})", length) : "index(-1) - a", {start},
      graph::Shape{sizes[0], length});
  const Value cache = call.Reshape(past, {sizes[0], before, length, behind});
  const Value rows = call.g.Transpose(call.Reshape(update, {sizes[0], before, written, behind}),
                                      {0, 2, 1, 3});
  const Value spread = call.g.Transpose(call.g.Add(graph::Gather{1, 1}, {rows, places}),
                                        {0, 2, 1, 3});
  const Value y = call.g.Map(fmt::format("select((c >= 0) & (c < {}), b, a)", written),
                             {cache, spread, call.Reshape(places, {sizes[0], 1, length, 1})});
  return {call.Reshape(y, sizes)};
}

}  // namespace atunner::importers::onnx
