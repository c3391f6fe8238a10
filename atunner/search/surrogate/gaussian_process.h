// A Gaussian process that grows one observation at a time and keeps its posterior at a set of
// candidates up to date.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

namespace atunner {

/// Matérn 5/2 with a length scale per coordinate, over standardised values. With n observations and
/// m candidates an observation costs O(n (n + m)), so that every candidate's mean and deviation are
/// exact at every step.
class GaussianProcess {
 public:
  /// `scales`: one over the length scale, per coordinate. `noise`: variance of a value, in units of
  /// the prior's.
  GaussianProcess(Eigen::VectorXf scales, double noise)
      : scales_(std::move(scales)), noise_(noise) {}

  size_t candidates() const { return static_cast<size_t>(count_); }

  void AddCandidate(std::span<const float> x);
  /// Returns the observation's number. `z` may be the process's own prediction, for a pending
  /// evaluation. `uncertainty`: variance of this value beyond the noise of all.
  size_t Observe(std::span<const float> x, double z, double uncertainty = 0);
  /// Replaces the value of an observation, when the result of a pending evaluation is there.
  void Correct(size_t observation, double z) {
    values_[static_cast<Eigen::Index>(observation)] = z;
  }
  /// Recomputes the means after observations and corrections.
  void Settle();

  double mean(size_t candidate) const { return means_[static_cast<Eigen::Index>(candidate)]; }
  double deviation(size_t candidate) const;
  /// The means of all candidates, for loops without bounds checks.
  const Eigen::VectorXf& means() const { return means_; }
  const Eigen::VectorXf& variances() const { return variances_; }

  /// Logarithm of the marginal likelihood of values `z` at `x` (a row per observation), each with a
  /// variance beyond the common noise, up to a constant; −infinity when the covariance is singular.
  static double LogLikelihood(const Eigen::MatrixXf& x, const Eigen::VectorXd& z,
                              const Eigen::VectorXd& uncertainty, const Eigen::VectorXf& scales,
                              double noise);

 private:
  static float Kernel(float squared_distance);
  void Reserve(Eigen::Index rows, Eigen::Index candidates);

  Eigen::VectorXf scales_;
  double noise_;
  Eigen::Index rows_ = 0;
  Eigen::Index count_ = 0;
  Eigen::MatrixXf x_;           ///< scaled coordinates, a column per observation
  Eigen::MatrixXf candidates_;  ///< scaled coordinates, a column per candidate
  Eigen::MatrixXd factor_;      ///< lower Cholesky factor of the covariance
  Eigen::VectorXd values_;
  Eigen::VectorXd whitened_;  ///< factor⁻¹ values
  /// Factor⁻¹ covariance with candidates, transposed: a row per candidate
  Eigen::MatrixXf solved_;
  Eigen::VectorXf means_;
  Eigen::VectorXf variances_;
};

}  // namespace atunner
