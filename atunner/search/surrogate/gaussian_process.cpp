#include "atunner/search/surrogate/gaussian_process.h"

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

using Eigen::Index;

constexpr double kJitter = 1e-6;

}  // namespace

float GaussianProcess::Kernel(float squared_distance) {
  const float d = std::sqrt(5.0f * squared_distance);
  return (1.0f + d + d * d / 3.0f) * std::exp(-d);
}

void GaussianProcess::Reserve(Index rows, Index candidates) {
  if (rows > factor_.rows()) {
    const Index more = std::max<Index>(32, 2 * rows);
    x_.conservativeResize(scales_.size(), more);
    factor_.conservativeResize(more, more);
    values_.conservativeResize(more);
    whitened_.conservativeResize(more);
  }
  if (rows > solved_.cols() || candidates > solved_.rows()) {
    solved_.conservativeResize(
        std::max<Index>(solved_.rows(), candidates > solved_.rows() ? 2 * candidates : 0),
        std::max(solved_.cols(), factor_.cols()));
  }
  if (candidates > candidates_.cols()) {
    candidates_.conservativeResize(scales_.size(), 2 * candidates);
    means_.conservativeResize(2 * candidates);
    variances_.conservativeResize(2 * candidates);
  }
}

void GaussianProcess::AddCandidate(std::span<const float> x) {
  Reserve(rows_, count_ + 1);
  const Eigen::Map<const Eigen::VectorXf> raw(x.data(), static_cast<Index>(x.size()));
  const Index at = count_++;
  candidates_.col(at) = raw.cwiseProduct(scales_);
  Eigen::VectorXd k(rows_);
  for (Index i = 0; i < rows_; ++i) k[i] = Kernel((x_.col(i) - candidates_.col(at)).squaredNorm());
  if (rows_ > 0) factor_.topLeftCorner(rows_, rows_).triangularView<Eigen::Lower>().solveInPlace(k);
  for (Index i = 0; i < rows_; ++i) solved_(at, i) = static_cast<float>(k[i]);
  means_[at] = static_cast<float>(k.dot(whitened_.head(rows_)));
  variances_[at] = static_cast<float>(1.0 - k.squaredNorm());
}

size_t GaussianProcess::Observe(std::span<const float> x, double z, double uncertainty) {
  Reserve(rows_ + 1, count_);
  const Eigen::Map<const Eigen::VectorXf> raw(x.data(), static_cast<Index>(x.size()));
  const Index at = rows_;
  x_.col(at) = raw.cwiseProduct(scales_);
  Eigen::VectorXd k(at);
  for (Index i = 0; i < at; ++i) k[i] = Kernel((x_.col(i) - x_.col(at)).squaredNorm());
  if (at > 0) factor_.topLeftCorner(at, at).triangularView<Eigen::Lower>().solveInPlace(k);
  const double pivot = std::sqrt(
      std::max(1.0 + noise_ + uncertainty + kJitter - k.squaredNorm(), kJitter));
  factor_.row(at).head(at) = k.transpose();
  factor_(at, at) = pivot;
  values_[at] = z;
  Eigen::VectorXf column(count_);
  for (Index c = 0; c < count_; ++c)
    column[c] = Kernel((candidates_.col(c) - x_.col(at)).squaredNorm());
  if (at > 0) column.noalias() -= solved_.topLeftCorner(count_, at) * k.cast<float>();
  column /= static_cast<float>(pivot);
  solved_.col(at).head(count_) = column;
  variances_.head(count_) -= column.cwiseAbs2();
  whitened_[at] = (z - k.dot(whitened_.head(at))) / pivot;
  means_.head(count_) += column * static_cast<float>(whitened_[at]);
  ++rows_;
  return static_cast<size_t>(at);
}

void GaussianProcess::Settle() {
  if (rows_ == 0) return;
  whitened_.head(rows_) = values_.head(rows_);
  factor_.topLeftCorner(rows_, rows_)
      .triangularView<Eigen::Lower>()
      .solveInPlace(whitened_.head(rows_));
  means_.head(count_).noalias() = solved_.topLeftCorner(count_, rows_) *
                                  whitened_.head(rows_).cast<float>();
}

double GaussianProcess::deviation(size_t candidate) const {
  return std::sqrt(std::max(1e-9, static_cast<double>(variances_[static_cast<Index>(candidate)])));
}

double GaussianProcess::LogLikelihood(const Eigen::MatrixXf& x, const Eigen::VectorXd& z,
                                      const Eigen::VectorXd& uncertainty,
                                      const Eigen::VectorXf& scales, double noise) {
  const Index n = x.rows();
  const Eigen::MatrixXf scaled = (x * scales.asDiagonal()).transpose();
  Eigen::MatrixXd covariance(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j)
      covariance(i, j) = Kernel((scaled.col(i) - scaled.col(j)).squaredNorm());
    covariance(i, i) = 1.0 + noise + uncertainty[i] + kJitter;
  }
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(covariance);
  if (factor.info() != Eigen::Success) return -INFINITY;
  const Eigen::VectorXd whitened = factor.matrixL().solve(z);
  return -0.5 * whitened.squaredNorm() - covariance.diagonal().array().log().sum();
}

}  // namespace atunner
