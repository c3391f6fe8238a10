// For strategies with a surrogate model: the scale of values, and expected improvement.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace atunner {

/// Log times as standardised values. Times far above the median are cut off: how slow the slow ones
/// are does not tell where the best is, and they would stretch the scale. Failures get the value of
/// the slowest.
struct ValueScale {
  static constexpr double kCut = 0.4;  ///< above median + 0.4 (median − best) all are the same
  double centre = 0;
  double spread = 1;
  double top = 1;

  ValueScale() = default;
  /// `ranking`: log times, best first; at least one.
  explicit ValueScale(const std::set<std::pair<double, uint64_t>>& ranking) {
    std::vector<double> values;
    values.reserve(ranking.size());
    for (const auto& [value, at] : ranking) values.push_back(value);
    const double middle = values[values.size() / 2];
    const double cut = middle + kCut * (middle - values.front());
    double sum = 0;
    double squares = 0;
    for (double value : values) {
      value = std::min(value, cut) - values.front();
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(values.size());
    centre = values.front() + sum / count;
    spread = std::max(1e-6,
                      std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count))));
    top = (cut - centre) / spread;
  }
  double Of(const std::optional<double>& log_time) const {
    return log_time ? std::min(top, (*log_time - centre) / spread) : top;
  }
};

/// Expected improvement of the minimum `best` by a normally distributed value.
inline double ExpectedImprovement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  const double gain = deviation * (z * 0.5 * std::erfc(-z / std::numbers::sqrt2) + density);
  return gain > 1e-12 ? gain : 1e-12 * z;  // hopeless ones keep their order
}

}  // namespace atunner
