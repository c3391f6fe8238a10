#include "atunner/search/surrogate/regression_forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace atunner {
namespace {

constexpr size_t kLeaf = 2;  // rows that are not split further

}  // namespace

void RegressionForest::Fit(std::span<const float> x, size_t width, std::span<const double> y,
                           size_t trees, Random& random) {
  x_ = x;
  y_ = y;
  width_ = width;
  nodes_.clear();
  roots_.clear();
  if (y.empty() || width == 0) return;
  std::vector<uint32_t> rows(y.size());
  for (size_t t = 0; t < trees; ++t) {
    std::iota(rows.begin(), rows.end(), 0u);
    roots_.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.emplace_back();
    Grow(roots_.back(), rows, random);
  }
  x_ = {};
  y_ = {};
}

bool RegressionForest::DrawSplit(std::span<const uint32_t> rows, Random& random,
                                 Split& split) const {
  split.a = static_cast<uint16_t>(random.Below(width_));
  split.b = static_cast<uint16_t>(random.Below(width_));
  if (const uint64_t kind = random.Below(4); kind < 2 && split.a != split.b)
    split.weight = kind ? 1.0f : -1.0f;
  float low = INFINITY;
  float high = -INFINITY;
  for (uint32_t row : rows) {
    const float v = split.Of(&x_[row * width_]);
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (!(high > low)) return false;
  split.threshold = low + (high - low) * static_cast<float>(random.Uniform());
  return true;
}

double RegressionForest::ErrorOf(const Split& split, std::span<const uint32_t> rows) const {
  double n = 0;
  double sum = 0;
  double all = 0;
  for (uint32_t row : rows) {
    all += y_[row];
    if (split.Of(&x_[row * width_]) > split.threshold) continue;
    n += 1;
    sum += y_[row];
  }
  const double rest = static_cast<double>(rows.size()) - n;
  if (n == 0 || rest == 0) return INFINITY;
  return -(sum * sum / n + (all - sum) * (all - sum) / rest);
}

bool RegressionForest::BestSplit(std::span<const uint32_t> rows, Random& random,
                                 Split& best) const {
  double least = INFINITY;
  for (size_t tries = 0; tries < width_ + 2; ++tries) {
    Split split;
    if (!DrawSplit(rows, random, split)) continue;
    const double error = ErrorOf(split, rows);
    if (error >= least) continue;
    least = error;
    best = split;
  }
  return least < INFINITY;
}

void RegressionForest::Grow(uint32_t node, std::span<uint32_t> rows, Random& random) {
  double sum = 0;
  for (uint32_t row : rows) sum += y_[row];
  nodes_[node].value = sum / static_cast<double>(rows.size());
  Split split;
  if (rows.size() <= kLeaf || !BestSplit(rows, random, split)) return;
  const auto right = std::ranges::partition(
      rows, [&](uint32_t row) { return split.Of(&x_[row * width_]) <= split.threshold; });
  const auto left = static_cast<uint32_t>(nodes_.size());
  nodes_[node].split = split;
  nodes_[node].left = left;
  nodes_.resize(nodes_.size() + 2);
  Grow(left, {rows.begin(), right.begin()}, random);
  Grow(left + 1, {right.begin(), right.end()}, random);
}

RegressionForest::Prediction RegressionForest::Predict(std::span<const float> point) const {
  double sum = 0;
  double squares = 0;
  for (uint32_t node : roots_) {
    while (nodes_[node].left != 0) {
      const Split& split = nodes_[node].split;
      node = nodes_[node].left + (split.Of(point.data()) > split.threshold);
    }
    sum += nodes_[node].value;
    squares += nodes_[node].value * nodes_[node].value;
  }
  const auto n = static_cast<double>(roots_.size());
  return {sum / n, std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)))};
}

}  // namespace atunner
