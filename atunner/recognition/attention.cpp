// Attention without a mask, and its weights alone; heads one after another.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

struct HeadSizes {
  int64_t heads = 1, queries = 1, keys = 1, dim = 1;
};

/// The head sizes that are usual are guessed where the source has them as numbers.
std::vector<SizeFact> HeadDims(const Facts& facts) {
  std::vector<SizeFact> dims = facts.sizes;
  for (const int64_t usual : {16, 32, 64, 128}) dims.push_back({std::to_string(usual), usual});
  return dims;
}

std::vector<FactorFact> ScalesOf(const Facts& facts, int64_t dim) {
  std::vector<FactorFact> scales{{"the root of the head size", 1 / std::sqrt(double(dim))},
                                 {"1", 1}};
  scales.insert(scales.end(), facts.factors.begin(), facts.factors.end());
  return scales;
}

/// softmax(q · kᵀ · scale), then times v if there is one.
Hypothesis HypothesisOf(const Facts& facts, const BufferFact& q, const BufferFact& k,
                        const BufferFact* v, const HeadSizes& of, const FactorFact& scale,
                        const std::string& form) {
  HypothesisWriter writer(v == nullptr ? "softmax of a product" : "attention",
                          fmt::format("attention of {} to {}{}, {}, scale {}", q.name, k.name,
                                      v == nullptr ? "" : " with " + v->name, form, scale.name));
  const std::string queries = writer.Input(q, {1, of.heads, of.queries, of.dim});
  const std::string keys = writer.Input(k, {1, of.heads, of.keys, of.dim});
  const std::string values = v == nullptr ? "" : writer.Input(*v, {1, of.heads, of.keys, of.dim});
  const std::string scores = writer.Line(
      fmt::format("contract({}, {}, equation=\"bhsd,bhtd->bhst\", as=float32)", queries, keys));
  const std::string scaled = writer.Line(scores + " * " + NumberText(scale.value));
  const std::string most = writer.Line(fmt::format("reduce_max({}, axes=[-1], keep=true)", scaled));
  const std::string power = writer.Line(fmt::format("exp({} - {})", scaled, most));
  const std::string sum = writer.Line(fmt::format("reduce_sum({}, axes=[-1], keep=true)", power));
  std::string weights = writer.Line(fmt::format("{} / {}", power, sum));
  if (v == nullptr) return std::move(writer).Output(*facts.Output(), weights);
  if (q.dtype != DType::kFloat32)
    weights = writer.Line(fmt::format("cast({}, {})", weights, Name(q.dtype)));
  const std::string mixed = writer.Line(
      fmt::format("contract({}, {}, equation=\"bhst,bhtd->bhsd\", as=float32)", weights, values));
  return std::move(writer).Output(*facts.Output(), mixed);
}

/// One head, or heads of a number of queries that is a size.
std::vector<std::pair<std::string, int64_t>> QueriesOf(const Facts& facts, int64_t rows) {
  std::vector<std::pair<std::string, int64_t>> all{{"one head", rows}};
  for (const SizeFact& size : facts.sizes) {
    if (size.value > 1 && size.value < rows && rows % size.value == 0)
      all.emplace_back("heads of " + size.name, size.value);
  }
  return all;
}

void AddForms(const Facts& facts, const BufferFact& q, const BufferFact& k, const BufferFact* v,
              const SizeFact& dim, std::vector<Hypothesis>& all) {
  const int64_t results = facts.Output()->elements;
  for (const auto& [form, queries] : QueriesOf(facts, q.elements / dim.value)) {
    const int64_t heads = q.elements / dim.value / queries;
    if (k.elements % (heads * dim.value) != 0) continue;
    const HeadSizes sizes{heads, queries, k.elements / heads / dim.value, dim.value};
    const int64_t expected = v == nullptr ? heads * queries * sizes.keys : q.elements;
    if (expected != results || sizes.keys < 2) continue;
    for (const FactorFact& scale : ScalesOf(facts, dim.value))
      all.push_back(HypothesisOf(facts, q, k, v, sizes, scale, form + ", size " + dim.name));
  }
}

}  // namespace

std::vector<Hypothesis> AttentionHypotheses(const Facts& facts) {
  std::vector<Hypothesis> all;
  const auto inputs = facts.Inputs();
  if (!IsFloat(facts.Output()->dtype)) return all;
  for (const SizeFact& dim : HeadDims(facts)) {
    for (const BufferFact* q : inputs) {
      if (dim.value < 2 || q->elements % dim.value != 0) continue;
      for (const BufferFact* k : inputs) {
        if (k == q || k->dtype != q->dtype || q->dtype == DType::kFloat64) continue;
        AddForms(facts, *q, *k, nullptr, dim, all);
        for (const BufferFact* v : inputs) {
          if (v != q && v != k && v->dtype == q->dtype && v->elements == k->elements)
            AddForms(facts, *q, *k, v, dim, all);
        }
      }
    }
  }
  return all;
}

}  // namespace atunner::recognition
