#include "atunner/search/bayes.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "atunner/search/asked_set.h"

namespace atunner {
namespace {

constexpr size_t kMostObservations = 250;  // of the process; beyond it the best and the latest stand for all
constexpr size_t kCandidates = 600;        // drawn per ask, beside the neighbours of the best
constexpr double kNoise = 1e-4;            // variance of log time, run to run

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

double Matern52(double squared_distance, double length) {
  const double d = std::sqrt(5.0 * squared_distance) / length;
  return (1.0 + d + d * d / 3.0) * std::exp(-d);
}

/// A fitted process over standardised log times.
class Process {
 public:
  void Fit(const Matrix& x, const Vector& y) {
    x_ = x;
    mean_ = y.mean();
    deviation_ = std::max(std::sqrt((y.array() - mean_).square().mean()), 1e-6);
    const Vector z = (y.array() - mean_) / deviation_;
    double best = -INFINITY;
    for (double length : {0.25, 0.5, 1.0, 2.0}) {
      Eigen::LLT<Matrix> factor(Kernel(x_, x_, length) +
                                (kNoise / (deviation_ * deviation_) + 1e-6) * Matrix::Identity(x.rows(), x.rows()));
      if (factor.info() != Eigen::Success) continue;
      const Vector alpha = factor.solve(z);
      const double likelihood = -0.5 * z.dot(alpha) - factor.matrixL().toDenseMatrix().diagonal().array().log().sum();
      if (likelihood <= best) continue;
      best = likelihood;
      length_ = length;
      factor_ = std::move(factor);
      alpha_ = alpha;
    }
  }

  /// Mean and deviation of log time at each row of `x`.
  void Predict(const Matrix& x, Vector& mean, Vector& deviation) const {
    const Matrix k = Kernel(x, x_, length_);
    mean = (k * alpha_).array() * deviation_ + mean_;
    const Matrix solved = factor_.matrixL().solve(k.transpose());
    deviation = (1.0 - solved.colwise().squaredNorm().transpose().array()).max(1e-9).sqrt() * deviation_;
  }

 private:
  static Matrix Kernel(const Matrix& a, const Matrix& b, double length) {
    Matrix k(a.rows(), b.rows());
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      for (Eigen::Index j = 0; j < b.rows(); ++j) k(i, j) = Matern52((a.row(i) - b.row(j)).squaredNorm(), length);
    }
    return k;
  }

  Matrix x_;
  Vector alpha_;
  Eigen::LLT<Matrix> factor_;
  double mean_ = 0;
  double deviation_ = 1;
  double length_ = 1;
};

double ExpectedImprovement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return (best - mean) * 0.5 * std::erfc(-z / std::numbers::sqrt2) + deviation * density;
}

class Bayes : public Searcher {
 public:
  Bayes(std::shared_ptr<const SpaceIndex> index, SearchOptions options)
      : asked_(std::move(index), options), options_(std::move(options)), random_(options_.seed) {
    const size_t features = asked_.index().Features(0).size();
    initial_ = std::clamp<size_t>(2 * features, 6, 16);
  }

  std::string_view name() const override { return "bayes"; }

  std::vector<Configuration> Ask(size_t n) override {
    std::vector<Configuration> out;
    std::vector<uint64_t> liars;
    while (out.size() < n) {
      std::optional<uint64_t> at = asked_.TakeFirst();
      if (!at && told_.size() + pending_.size() < initial_) at = Spread();
      if (!at && times_.size() >= 3) at = Improve(liars);
      if (!at) at = asked_.Draw(random_);
      if (!at) break;
      asked_.Add(*at);
      pending_.insert(*at);
      liars.push_back(*at);
      out.push_back(asked_.index().At(*at));
    }
    return out;
  }

  void Tell(const Observation& observation) override {
    const uint64_t at = asked_.index().IndexOf(observation.configuration);
    if (at >= asked_.index().size()) return;
    asked_.Add(at);
    pending_.erase(at);
    told_.insert(at);
    if (observation.objective_ns && *observation.objective_ns > 0) {
      times_[at] = std::log(*observation.objective_ns);
      failed_.erase(at);
    } else if (!times_.contains(at)) {
      failed_.insert(at);
    }
  }

 private:
  /// Of some random draws the one farthest from what is known; where a rough cost exists, among the cheaper half.
  std::optional<uint64_t> Spread() {
    std::vector<std::pair<double, uint64_t>> draws;
    for (int i = 0; i < 48; ++i) {
      const auto at = asked_.Draw(random_);
      if (!at) break;
      const auto cost = options_.cost ? options_.cost(asked_.index().At(*at)) : std::nullopt;
      draws.emplace_back(cost.value_or(0.0), *at);
    }
    if (draws.empty()) return std::nullopt;
    std::ranges::sort(draws);
    const size_t keep = options_.cost ? std::max<size_t>(1, draws.size() / 3) : draws.size();
    std::optional<uint64_t> best;
    double farthest = -1;
    for (size_t i = 0; i < keep; ++i) {
      const double distance = DistanceToKnown(draws[i].second);
      if (distance > farthest) {
        farthest = distance;
        best = draws[i].second;
      }
    }
    return best;
  }

  double DistanceToKnown(uint64_t at) const {
    const std::vector<double> here = asked_.index().Features(at);
    double least = INFINITY;
    const auto look = [&](uint64_t other) {
      least = std::min(least, SquaredDistance(here, asked_.index().Features(other)));
    };
    for (uint64_t other : told_) look(other);
    for (uint64_t other : pending_) look(other);
    return std::isinf(least) ? 1.0 : least;
  }

  static double SquaredDistance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  }

  /// Share of failures among the nearest five, weighted by nearness.
  double SuccessProbability(const std::vector<double>& here) const {
    if (failed_.empty()) return 1;
    std::vector<std::pair<double, bool>> near;
    for (uint64_t at : failed_) near.emplace_back(SquaredDistance(here, asked_.index().Features(at)), false);
    for (const auto& [at, time] : times_) near.emplace_back(SquaredDistance(here, asked_.index().Features(at)), true);
    const size_t k = std::min<size_t>(5, near.size());
    std::ranges::partial_sort(near, near.begin() + static_cast<long>(k));
    double good = 0.2;
    double all = 0.2;
    for (size_t i = 0; i < k; ++i) {
      const double weight = 1.0 / (0.02 + near[i].first);
      all += weight;
      if (near[i].second) good += weight;
    }
    return good / all;
  }

  std::vector<uint64_t> Training() const {
    std::vector<std::pair<double, uint64_t>> order;
    for (const auto& [at, time] : times_) order.emplace_back(time, at);
    std::ranges::sort(order);
    std::vector<uint64_t> chosen;
    const size_t best = std::min(order.size(), kMostObservations / 2);
    for (size_t i = 0; i < best; ++i) chosen.push_back(order[i].second);
    const size_t rest = order.size() - best;
    const size_t more = std::min(rest, kMostObservations - best);
    for (size_t i = 0; i < more; ++i) chosen.push_back(order[best + i * rest / more].second);
    return chosen;
  }

  std::vector<uint64_t> Candidates() {
    std::set<uint64_t> candidates;
    std::vector<std::pair<double, uint64_t>> order;
    for (const auto& [at, time] : times_) order.emplace_back(time, at);
    std::ranges::sort(order);
    for (size_t i = 0; i < std::min<size_t>(order.size(), 4); ++i) {
      for (uint64_t at : asked_.index().Neighbours(order[i].second, Neighbourhood::kHamming)) {
        if (!asked_.Contains(at)) candidates.insert(at);
      }
    }
    for (size_t i = 0; i < kCandidates; ++i) {
      const auto at = asked_.Draw(random_);
      if (!at) break;
      candidates.insert(*at);
    }
    return {candidates.begin(), candidates.end()};
  }

  Matrix FeatureMatrix(const std::vector<uint64_t>& rows) const {
    const auto columns = static_cast<Eigen::Index>(asked_.index().Features(0).size());
    Matrix x(static_cast<Eigen::Index>(rows.size()), columns);
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> features = asked_.index().Features(rows[i]);
      for (Eigen::Index j = 0; j < columns; ++j) x(static_cast<Eigen::Index>(i), j) = features[static_cast<size_t>(j)];
    }
    return x;
  }

  std::optional<uint64_t> Improve(const std::vector<uint64_t>& liars) {
    const std::vector<uint64_t> candidates = Candidates();
    if (candidates.empty()) return std::nullopt;
    std::vector<uint64_t> rows = Training();
    Vector y(static_cast<Eigen::Index>(rows.size() + liars.size()));
    double best = INFINITY;
    double sum = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double time = times_.at(rows[i]);
      y(static_cast<Eigen::Index>(i)) = time;
      best = std::min(best, time);
      sum += time;
    }
    for (size_t i = 0; i < liars.size(); ++i)
      y(static_cast<Eigen::Index>(rows.size() + i)) = sum / static_cast<double>(rows.size());
    rows.insert(rows.end(), liars.begin(), liars.end());
    Process process;
    process.Fit(FeatureMatrix(rows), y);
    Vector mean;
    Vector deviation;
    process.Predict(FeatureMatrix(candidates), mean, deviation);
    double most = -1;
    uint64_t chosen = candidates[0];
    for (size_t i = 0; i < candidates.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      const double gain = ExpectedImprovement(best, mean(row), deviation(row)) *
                          SuccessProbability(asked_.index().Features(candidates[i]));
      if (gain > most) {
        most = gain;
        chosen = candidates[i];
      }
    }
    return chosen;
  }

  AskedSet asked_;
  SearchOptions options_;
  Random random_;
  size_t initial_ = 8;
  std::map<uint64_t, double> times_;  ///< log ns
  std::set<uint64_t> failed_;
  std::set<uint64_t> told_;
  std::set<uint64_t> pending_;
};

}  // namespace

std::unique_ptr<Searcher> MakeBayes(std::shared_ptr<const SpaceIndex> index, SearchOptions options) {
  return std::make_unique<Bayes>(std::move(index), std::move(options));
}

}  // namespace atunner
