// A linear trend from the prior to the observed values: how well the prior predicts this run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "atunner/search/surrogate/prior.h"

namespace atunner {

/// value ≈ offset + slope · prior. A Gaussian process models the residual, in units of its standard
/// deviation. The slope is a ridge estimate around one and never negative, so that a misleading
/// prior is ignored after a few observations. Without a prior the residual is the value.
class Trend {
 public:
  explicit Trend(std::shared_ptr<const Prior> prior) : prior_(std::move(prior)) {}

  struct Point {
    uint64_t at = 0;
    double value = 0;  ///< standardised
  };
  void Fit(std::span<const Point> points);
  double Of(uint64_t at) const;
  /// Standardised value to residual, and back.
  double Residual(uint64_t at, double value) const { return (value - Of(at)) / spread_; }
  double Value(uint64_t at, double residual) const { return Of(at) + spread_ * residual; }
  double spread() const { return spread_; }
  double slope() const { return slope_; }

 private:
  double Expected(uint64_t at) const;

  std::shared_ptr<const Prior> prior_;
  mutable std::unordered_map<uint64_t, double> expected_;
  double offset_ = 0;
  double slope_ = 0;
  double spread_ = 1;
};

}  // namespace atunner
