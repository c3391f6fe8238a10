#include "atunner/search/strategies/forest_search.h"

#include <algorithm>
#include <cmath>

#include "atunner/search/space/coordinates.h"
#include "atunner/search/surrogate/acquisition.h"
#include "atunner/search/surrogate/prior.h"
#include "atunner/search/surrogate/regression_forest.h"

namespace atunner {
namespace {

constexpr size_t kInitial = 8;
constexpr size_t kTrees = 48;
constexpr size_t kDraws = 300;     // candidates drawn uniformly, beside the leaders' neighbours
constexpr size_t kLeaders = 6;     // leaders whose neighbours are candidates
constexpr size_t kMostRows = 600;  // the best half of them, the rest at random
constexpr double kGrowth = 1.04;   // growth of the results after which a new forest is made
constexpr double kLeastDeviation = 0.02;

class Forest : public Strategy {
 public:
  Forest(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Strategy(std::move(name), std::move(space), std::move(search_options)),
        coordinates_(index()) {}

 protected:
  std::optional<uint64_t> Propose() override {
    if (asked_count() < kInitial || ranking().size() < 3) return std::nullopt;
    if (results().size() >= renew_at_) Renew();
    if (queue_.empty()) FillQueue();
    if (queue_.empty()) return std::nullopt;
    const uint64_t at = queue_.back();
    queue_.pop_back();
    return at;
  }

  void OnObserved(uint64_t at, std::optional<double>) override {
    observed_.push_back(at);
    if (ranking().empty() || ranking().begin()->second != at) return;
    queue_.clear();  // a new leader has new neighbours
  }

 private:
  /// The prediction of the prior is one more coordinate; the trees learn how useful it is.
  std::vector<float> PointOf(uint64_t at) const {
    std::vector<float> point = coordinates_.Of(at);
    if (options().prior) point.push_back(static_cast<float>(options().prior->Of(at)));
    return point;
  }

  void Renew() {
    const auto known = static_cast<double>(results().size());
    renew_at_ = static_cast<size_t>(std::ceil(known * kGrowth)) + 1;
    std::vector<uint64_t> rows;
    for (const auto& [time, at] : ranking()) {
      if (rows.size() >= kMostRows / 2) break;
      rows.push_back(at);
    }
    for (size_t i = 0; i < kMostRows && rows.size() < kMostRows; ++i) {
      rows.push_back(observed_.size() <= kMostRows / 2 && i < observed_.size()
                         ? observed_[i]
                         : observed_[random().Below(observed_.size())]);
    }
    std::ranges::sort(rows);
    rows.erase(std::ranges::unique(rows).begin(), rows.end());
    const ValueScale scale(ranking());
    std::vector<float> x;
    std::vector<double> y;
    for (uint64_t at : rows) {
      const std::vector<float> point = PointOf(at);
      x.insert(x.end(), point.begin(), point.end());
      y.push_back(scale.Of(*ResultOf(at)));
    }
    forest_.Fit(x, coordinates_.size() + (options().prior ? 1 : 0), y, kTrees, random());
    best_ = scale.Of(ranking().begin()->first);
    queue_.clear();
  }

  /// The most promising ones, best last.
  void FillQueue() {
    std::vector<std::pair<double, uint64_t>> candidates;
    std::unordered_set<uint64_t> seen;
    const auto look = [&](uint64_t at) {
      if (IsAsked(at) || !seen.insert(at).second) return;
      const auto [mean, deviation] = forest_.Predict(PointOf(at));
      candidates.emplace_back(
          ExpectedImprovement(best_, mean, std::max(deviation, kLeastDeviation)), at);
    };
    size_t leaders = 0;
    for (const auto& [time, at] : ranking()) {
      if (++leaders > kLeaders) break;
      for (uint64_t other : index().Neighbours(at, Neighbourhood::kHamming)) look(other);
    }
    for (size_t i = 0; i < kDraws; ++i) look(index().Draw(random()));
    std::ranges::sort(candidates);
    const size_t kept = std::min<size_t>(candidates.size(),
                                         std::max<size_t>(1, results().size() / 20));
    for (size_t i = candidates.size() - kept; i < candidates.size(); ++i)
      queue_.push_back(candidates[i].second);
  }

  Coordinates coordinates_;
  RegressionForest forest_;
  double best_ = 0;
  size_t renew_at_ = 0;
  std::vector<uint64_t> observed_;
  std::vector<uint64_t> queue_;
};

}  // namespace

std::unique_ptr<Strategy> MakeForest(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options) {
  return std::make_unique<Forest>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
