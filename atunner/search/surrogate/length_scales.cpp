#include "atunner/search/surrogate/length_scales.h"

#include <algorithm>
#include <cmath>

#include "atunner/search/surrogate/gaussian_process.h"

namespace atunner {
namespace {

constexpr float kLeastScale = 0.03f;  // sees nothing of this coordinate
constexpr float kMostScale = 12.0f;   // neighbouring values tell nothing of one another
constexpr double kUsualNoise = 1e-2;
constexpr double kNoiseSpread = 2.0;  // standard deviations of the priors, of logarithms
constexpr double kScaleSpread = 1.0;

double LogPrior(double value, double usual, double spread) {
  const double l = std::log(value / usual) / spread;
  return -0.5 * l * l;
}

}  // namespace

LengthScales::LengthScales(std::vector<size_t> groups) : groups_(std::move(groups)) {
  scales_ = Eigen::VectorXf::Ones(groups_.empty() ? 0
                                                  : static_cast<Eigen::Index>(groups_.back() + 1));
}

Eigen::VectorXf LengthScales::PerCoordinate(const Eigen::VectorXf& scales) const {
  Eigen::VectorXf all(static_cast<Eigen::Index>(groups_.size()));
  for (size_t i = 0; i < groups_.size(); ++i)
    all[static_cast<Eigen::Index>(i)] = scales[static_cast<Eigen::Index>(groups_[i])];
  return all;
}

double LengthScales::Posterior(const Eigen::MatrixXf& x, const Eigen::VectorXd& z,
                               const Eigen::VectorXd& uncertainty, const Eigen::VectorXf& scales,
                               double noise) const {
  double prior = LogPrior(noise, kUsualNoise, kNoiseSpread);
  for (const float scale : scales) prior += LogPrior(scale, 1.0, kScaleSpread);
  return prior + GaussianProcess::LogLikelihood(x, z, uncertainty, PerCoordinate(scales), noise);
}

void LengthScales::Improve(const Eigen::MatrixXf& x, const Eigen::VectorXd& z,
                           const Eigen::VectorXd& uncertainty) {
  double best = Posterior(x, z, uncertainty, scales_, noise_);
  const auto keep_if_better = [&](const Eigen::VectorXf& scales, double noise) {
    const double here = Posterior(x, z, uncertainty, scales, noise);
    if (here <= best) return;
    best = here;
    scales_ = scales;
    noise_ = noise;
  };
  for (Eigen::Index i = 0; i < scales_.size(); ++i) {
    for (const float factor : {0.6f, 1.7f}) {
      Eigen::VectorXf tried = scales_;
      tried[i] = std::clamp(tried[i] * factor, kLeastScale, kMostScale);
      keep_if_better(tried, noise_);
    }
  }
  for (const float factor : {0.6f, 1.7f}) {
    const Eigen::VectorXf tried = (scales_ * factor).cwiseMin(kMostScale).cwiseMax(kLeastScale);
    keep_if_better(tried, noise_);
  }
  for (const double factor : {0.3, 3.0})
    keep_if_better(scales_, std::clamp(noise_ * factor, 1e-5, 0.3));
}

}  // namespace atunner
