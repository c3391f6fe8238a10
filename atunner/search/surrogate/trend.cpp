#include "atunner/search/surrogate/trend.h"

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

constexpr double kUsualSlope = 0.8;
constexpr double kSlopeVariance = 0.25;
constexpr double kNoise = 0.3;         // variance of a value around the trend, before it is known
constexpr double kUsualWeight = 4;     // observations that the usual variance counts as
constexpr double kLeastSpread = 0.25;  // keeps the process from becoming overconfident

}  // namespace

double Trend::Expected(uint64_t at) const {
  const auto [entry, fresh] = expected_.try_emplace(at, 0.0);
  if (fresh) entry->second = prior_->Of(at);
  return entry->second;
}

double Trend::Of(uint64_t at) const {
  return slope_ == 0 ? offset_ : offset_ + slope_ * Expected(at);
}

void Trend::Fit(std::span<const Point> points) {
  if (!prior_ || points.empty()) return;
  const auto n = static_cast<double>(points.size());
  double value = 0;
  double expected = 0;
  for (const Point& point : points) {
    value += point.value / n;
    expected += Expected(point.at) / n;
  }
  double covariance = kUsualSlope / kSlopeVariance;
  double precision = 1 / kSlopeVariance;
  for (const Point& point : points) {
    const double e = Expected(point.at) - expected;
    covariance += e * (point.value - value) / kNoise;
    precision += e * e / kNoise;
  }
  slope_ = std::clamp(covariance / precision, 0.0, 1.5);
  offset_ = value - slope_ * expected;
  double squares = kUsualWeight * (slope_ > 0 ? kNoise : 1.0);
  for (const Point& point : points) {
    const double residual = point.value - Of(point.at);
    squares += residual * residual;
  }
  spread_ = std::max(kLeastSpread, std::sqrt(squares / (kUsualWeight + n)));
}

}  // namespace atunner
