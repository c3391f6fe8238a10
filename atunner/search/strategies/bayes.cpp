#include "atunner/search/strategies/bayes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "atunner/search/space/coordinates.h"
#include "atunner/search/surrogate/acquisition.h"
#include "atunner/search/surrogate/gaussian_process.h"
#include "atunner/search/surrogate/length_scales.h"
#include "atunner/search/surrogate/trend.h"

namespace atunner {
namespace {

constexpr size_t kInitial = 4;      // spread out, before there is anything to model
constexpr size_t kFewestTimes = 3;  // results that a model needs
constexpr int kSpreadDraws = 60;    // draws of which the farthest is taken
constexpr size_t kSpreadLooksBack = 64;
constexpr size_t kPool = 1000;       // drawn uniformly, beside the leaders' neighbours
constexpr size_t kLeaders = 8;       // leaders whose neighbours are candidates
constexpr size_t kMostRows = 200;    // rows of a new process
constexpr size_t kMostFitted = 100;  // rows that the length scales are fitted to
constexpr double kGrowth = 1.15;     // growth of the results after which a new process is made
constexpr size_t kMostGrowth = 60;

class Bayes : public Strategy {
 public:
  Bayes(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Strategy(std::move(name), std::move(space), std::move(search_options)),
        coordinates_(index()),
        scales_(coordinates_.groups()),
        trend_(options().prior) {}

 protected:
  std::optional<uint64_t> Propose() override {
    if (asked_count() < kInitial) return Spread();
    // When many are asked for before the first result, the farthest points would be ever more
    // extreme ones; a uniform sample is better.
    if (ranking().size() < kFewestTimes) return std::nullopt;
    if (!process_ || asked_count() >= renew_at_) Renew();
    if (corrected_) process_->Settle();
    corrected_ = false;
    JoinNeighbours();
    return MostPromising();
  }

  void OnAsked(uint64_t at) override {
    order_.push_back(at);
    if (process_) Enter(at);
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    const auto row = rows_.find(at);
    if (row == rows_.end()) return;
    process_->Correct(row->second, trend_.Residual(at, scale_.Of(log_time)));
    corrected_ = true;
  }

  void OnRefined(uint64_t at, double log_time) override { OnObserved(at, log_time); }

 private:
  /// Far from what is known, starting in the middle.
  std::optional<uint64_t> Spread() {
    if (order_.empty()) return Middle();
    const size_t from = order_.size() > kSpreadLooksBack ? order_.size() - kSpreadLooksBack : 0;
    std::vector<std::vector<float>> known;
    for (size_t i = from; i < order_.size(); ++i) known.push_back(coordinates_.Of(order_[i]));
    return DrawFar(kSpreadDraws, [&](uint64_t at) {
      const std::vector<float> here = coordinates_.Of(at);
      double least = INFINITY;
      for (const auto& there : known) least = std::min(least, SquaredDistance(here, there));
      return std::isinf(least) ? 0.0 : least;
    });
  }

  /// The leaders, and a sample of the rest.
  std::vector<uint64_t> ChooseRows() {
    std::vector<uint64_t> chosen;
    std::unordered_set<uint64_t> in;
    for (const auto& [time, at] : ranking()) {
      if (chosen.size() >= kMostRows * 2 / 3) break;
      chosen.push_back(at);
      in.insert(at);
    }
    std::vector<uint64_t> rest;
    for (uint64_t at : order_) {
      if (!in.contains(at)) rest.push_back(at);
    }
    for (size_t i = 0; i < rest.size() && chosen.size() < kMostRows; ++i) {
      std::swap(rest[i], rest[i + random().Below(rest.size() - i)]);
      chosen.push_back(rest[i]);
    }
    return chosen;
  }

  void FitScales(const std::vector<uint64_t>& rows) {
    std::vector<uint64_t> observed;
    std::ranges::copy_if(rows, std::back_inserter(observed),
                         [&](uint64_t at) { return ResultOf(at) != nullptr; });
    const size_t used = std::min(kMostFitted, observed.size());
    Eigen::MatrixXf x(static_cast<Eigen::Index>(used),
                      static_cast<Eigen::Index>(coordinates_.size()));
    Eigen::VectorXd z(static_cast<Eigen::Index>(used));
    Eigen::VectorXd uncertainty(z.size());
    for (size_t i = 0; i < used; ++i) {
      const uint64_t at = observed[i * observed.size() / used];
      const std::vector<float> point = coordinates_.Of(at);
      const auto row = static_cast<Eigen::Index>(i);
      x.row(row) = Eigen::Map<const Eigen::RowVectorXf>(point.data(), x.cols());
      z[row] = trend_.Residual(at, scale_.Of(*ResultOf(at)));
      uncertainty[row] = Uncertainty(at);
    }
    scales_.Improve(x, z, uncertainty);
  }

  /// Variance of a measured value beyond the process's own noise, in the residual's units.
  double Uncertainty(uint64_t at) const {
    const double error = ErrorOf(at) / (scale_.spread * trend_.spread());
    return error * error;
  }

  void FitTrend(const std::vector<uint64_t>& rows) {
    std::vector<Trend::Point> points;
    for (uint64_t at : rows) {
      if (const auto* result = ResultOf(at)) points.push_back({at, scale_.Of(*result)});
    }
    trend_.Fit(points);
  }

  void Renew() {
    const auto known = static_cast<double>(asked_count());
    renew_at_ = std::min(static_cast<size_t>(std::ceil(known * kGrowth)),
                         asked_count() + kMostGrowth);
    scale_ = ValueScale(ranking());
    const std::vector<uint64_t> rows = ChooseRows();
    FitTrend(rows);
    FitScales(rows);
    process_ = std::make_unique<GaussianProcess>(scales_.PerCoordinate(), scales_.noise());
    rows_.clear();
    members_.clear();
    place_.clear();
    expanded_.clear();
    // Results are added first, so that pending configurations are predicted from them.
    for (uint64_t at : rows) {
      if (const auto* result = ResultOf(at))
        rows_[at] = process_->Observe(coordinates_.Of(at), trend_.Residual(at, scale_.Of(*result)),
                                      Uncertainty(at));
    }
    for (uint64_t at : rows) {
      if (ResultOf(at) == nullptr) Enter(at);
    }
    FillPool();
  }

  void FillPool() {
    if (index().size() <= kPool) {
      for (uint64_t at = 0; at < index().size(); ++at) Join(at);
      return;
    }
    for (size_t i = 0; i < kPool; ++i) {
      if (const auto at = DrawNew()) Join(*at);
    }
  }

  void Join(uint64_t at) {
    if (IsAsked(at) || !place_.try_emplace(at, members_.size()).second) return;
    process_->AddCandidate(coordinates_.Of(at));
    members_.push_back(at);
  }

  /// A configuration without a result yet.
  void Enter(uint64_t at) {
    const auto place = place_.find(at);
    rows_[at] = process_->Observe(coordinates_.Of(at),
                                  place == place_.end() ? 0.0 : process_->mean(place->second));
  }

  void JoinNeighbours() {
    size_t leaders = 0;
    for (const auto& [time, at] : ranking()) {
      if (++leaders > kLeaders) break;
      if (!expanded_.insert(at).second) continue;
      for (uint64_t other : index().Neighbours(at, Neighbourhood::kHamming)) Join(other);
    }
  }

  std::optional<uint64_t> MostPromising() const {
    const double best = scale_.Of(ranking().begin()->first);
    double most = -INFINITY;
    std::optional<uint64_t> chosen;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (IsAsked(members_[i])) continue;
      const double mean = trend_.Value(members_[i], process_->mean(i));
      const double gain = ExpectedImprovement(best, mean, trend_.spread() * process_->deviation(i));
      if (gain <= most) continue;
      most = gain;
      chosen = members_[i];
    }
    return chosen;
  }

  Coordinates coordinates_;
  LengthScales scales_;
  std::vector<uint64_t> order_;  ///< asked, in order
  ValueScale scale_;
  Trend trend_;
  std::unique_ptr<GaussianProcess> process_;
  bool corrected_ = false;
  size_t renew_at_ = 0;
  std::unordered_map<uint64_t, size_t> rows_;   ///< of the process, by configuration
  std::vector<uint64_t> members_;               ///< the process's candidates
  std::unordered_map<uint64_t, size_t> place_;  ///< among the candidates
  std::unordered_set<uint64_t> expanded_;       ///< leaders whose neighbours are in
};

}  // namespace

std::unique_ptr<Strategy> MakeBayes(std::string name, std::shared_ptr<const SpaceIndex> index,
                                    SearchOptions options) {
  return std::make_unique<Bayes>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
