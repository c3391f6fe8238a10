// The length scales of a Gaussian process, one for each aspect of a space.
#pragma once

#include <Eigen/Dense>
#include <vector>

namespace atunner {

/// One over the length scale per group of coordinates, and the noise; kept from fit to fit.
class LengthScales {
 public:
  explicit LengthScales(std::vector<size_t> groups);

  /// One pass of coordinate-wise steps uphill in the posterior (log-normal priors around 1, noise
  /// around 1 %). Meant to be called again as observations come in: `x` has a row per observation,
  /// `z` is standardised, `uncertainty` the variance of each beyond the common noise.
  void Improve(const Eigen::MatrixXf& x, const Eigen::VectorXd& z,
               const Eigen::VectorXd& uncertainty);
  Eigen::VectorXf PerCoordinate() const { return PerCoordinate(scales_); }
  double noise() const { return noise_; }

 private:
  Eigen::VectorXf PerCoordinate(const Eigen::VectorXf& scales) const;
  double Posterior(const Eigen::MatrixXf& x, const Eigen::VectorXd& z,
                   const Eigen::VectorXd& uncertainty, const Eigen::VectorXf& scales,
                   double noise) const;

  std::vector<size_t> groups_;
  Eigen::VectorXf scales_;
  double noise_ = 1e-2;
};

}  // namespace atunner
