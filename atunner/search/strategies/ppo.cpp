#include "atunner/search/strategies/ppo.h"

#include <algorithm>
#include <cmath>

#include "atunner/search/space/coordinates.h"
#include "atunner/search/surrogate/acquisition.h"

namespace atunner {
namespace {

constexpr size_t kFewestTimes = 3;
constexpr size_t kLeaders = 5;
constexpr int kNeighbours = 20;  // drawn from the leaders' neighbours
constexpr int kDraws = 12;       // drawn uniformly
// Results that the features use: the best half, and the latest half.
constexpr size_t kMostRows = 120;
constexpr double kNear = 0.3;  // squared distance at which results are hardly correlated
constexpr double kFar = 1.2;
constexpr double kShrink = 0.3;  // observations that the mean counts for

constexpr float kBuiltIn[] = {
#include "atunner/search/strategies/ppo_weights.inc"
};

/// A result as the features use it.
struct Row {
  std::vector<float> point;
  std::vector<uint16_t> positions;
  double z = 0;
};

/// Weighted mean, shrunk towards 0 where there are few results.
struct KernelMean {
  double width;
  double weights = 0;
  double sum = 0;
  void Add(double squared, double z) {
    const double weight = std::exp(-squared / width);
    weights += weight;
    sum += weight * z;
  }
  float mean() const { return static_cast<float>(sum / (weights + kShrink)); }
  float density() const { return static_cast<float>(std::log1p(weights)); }
};

class PolicySearch : public Strategy {
 public:
  PolicySearch(std::string name, std::shared_ptr<const SpaceIndex> space,
               SearchOptions search_options, const Policy& policy, std::vector<PolicyStep>* trace)
      : Strategy(std::move(name), std::move(space), std::move(search_options)),
        coordinates_(index()),
        policy_(policy),
        trace_(trace) {}

 protected:
  std::optional<uint64_t> Propose() override {
    if (asked_count() == 0) return Middle();
    if (ranking().size() < kFewestTimes) return std::nullopt;
    Look();
    DrawCandidates();
    if (candidates_.empty()) return std::nullopt;
    PolicyStep step;
    std::vector<double> scores;
    for (const auto& [at, leader] : candidates_) {
      step.candidates.push_back(FeaturesOf(at, leader));
      scores.push_back(policy_.actor(step.candidates.back()));
    }
    step.chosen = trace_ ? DrawSoftmax(scores) : std::ranges::max_element(scores) - scores.begin();
    const uint64_t at = candidates_[step.chosen].first;
    if (trace_) trace_->push_back(std::move(step));
    return at;
  }

  void OnAsked(uint64_t at) override { pending_[at] = coordinates_.Of(at); }

  void OnObserved(uint64_t at, std::optional<double>) override {
    pending_.erase(at);
    observed_.push_back(at);
    since_improved_ = !ranking().empty() && ranking().begin()->second == at ? 0
                                                                            : since_improved_ + 1;
  }

 private:
  Row RowOf(uint64_t at, const ValueScale& scale) const {
    return {coordinates_.Of(at), index().PositionsAt(at), scale.Of(*ResultOf(at))};
  }

  /// Computes the rows, and for each value of each parameter the mean of the rows that have it.
  void Look() {
    const ValueScale scale(ranking());
    rows_.clear();
    std::unordered_set<uint64_t> seen;
    const auto add = [&](uint64_t at) {
      if (seen.insert(at).second) rows_.push_back(RowOf(at, scale));
    };
    for (const auto& [time, at] : ranking()) {
      if (rows_.size() >= kMostRows / 2) break;
      add(at);
    }
    for (auto at = observed_.rbegin(); at != observed_.rend() && rows_.size() < kMostRows; ++at)
      add(*at);
    best_ = rows_.front().point;
    best_z_ = rows_.front().z;
    values_.clear();
    for (const Parameter& parameter : index().space().parameters)
      values_.emplace_back(parameter.values.size());
    for (const Row& row : rows_) {
      for (size_t p = 0; p < row.positions.size(); ++p) {
        ValueMean& value = values_[p][row.positions[p]];
        value.sum += row.z;
        ++value.count;
      }
    }
  }

  void DrawCandidates() {
    candidates_.clear();
    std::unordered_set<uint64_t> seen;
    const auto add = [&](uint64_t at, float leader) {
      if (!IsAsked(at) && seen.insert(at).second) candidates_.emplace_back(at, leader);
    };
    std::vector<uint64_t> leaders;
    for (const auto& [time, at] : ranking()) {
      if (leaders.size() >= kLeaders) break;
      leaders.push_back(at);
    }
    for (int i = 0; i < kNeighbours; ++i) {
      const size_t rank = random().Below(leaders.size());
      const auto& around = NeighboursOf(leaders[rank]);
      if (!around.empty())
        add(around[random().Below(around.size())], 1.0f / static_cast<float>(1 + rank));
    }
    for (int i = 0; i < kDraws; ++i) {
      if (const auto at = DrawNew()) add(*at, 0);
    }
  }

  const std::vector<uint64_t>& NeighboursOf(uint64_t at) {
    const auto [entry, fresh] = neighbours_.try_emplace(at);
    if (fresh) entry->second = index().Neighbours(at, Neighbourhood::kHamming);
    return entry->second;
  }

  /// The results around a point.
  struct Surroundings {
    KernelMean close{kNear};
    KernelMean wide{kFar};
    KernelMean pending{kNear};
    double nearest = INFINITY;  ///< squared distance of the nearest result
    double nearest_z = 0;       ///< its value
  };

  Surroundings SurroundingsOf(const std::vector<float>& point) const {
    Surroundings around;
    for (const Row& row : rows_) {
      const double squared = SquaredDistance(point, row.point);
      around.close.Add(squared, row.z);
      around.wide.Add(squared, row.z);
      if (squared >= around.nearest) continue;
      around.nearest = squared;
      around.nearest_z = row.z;
    }
    for (const auto& [other, there] : pending_)
      around.pending.Add(SquaredDistance(point, there), 0);
    return around;
  }

  /// Statistics of the values of a configuration, over its parameters.
  struct ValueStatistics {
    double sum = 0;            ///< of the values' mean results
    double worst = -INFINITY;  ///< the largest of them
    double rarest = INFINITY;  ///< how often the rarest value has a result
  };

  ValueStatistics StatisticsOf(const std::vector<uint16_t>& positions) const {
    ValueStatistics statistics;
    for (size_t p = 0; p < positions.size(); ++p) {
      const ValueMean& value = values_[p][positions[p]];
      const double mean = value.sum / (value.count + 1.0);
      statistics.sum += mean;
      statistics.worst = std::max(statistics.worst, mean);
      statistics.rarest = std::min(statistics.rarest, static_cast<double>(value.count));
    }
    return statistics;
  }

  PolicyFeatures FeaturesOf(uint64_t at, float leader) const {
    const std::vector<float> point = coordinates_.Of(at);
    const std::vector<uint16_t> positions = index().PositionsAt(at);
    const Surroundings around = SurroundingsOf(point);
    const ValueStatistics values = StatisticsOf(positions);
    return {around.close.mean(),
            around.close.density(),
            around.wide.mean(),
            around.wide.density(),
            static_cast<float>(std::sqrt(around.nearest)),
            static_cast<float>(around.nearest_z),
            static_cast<float>(std::sqrt(SquaredDistance(point, best_))),
            static_cast<float>(values.sum / std::sqrt(static_cast<double>(positions.size()))),
            static_cast<float>(values.worst),
            static_cast<float>(std::log1p(values.rarest)),
            leader,
            around.pending.density(),
            static_cast<float>(std::log1p(static_cast<double>(observed_.size())) / 5),
            static_cast<float>(std::log1p(static_cast<double>(since_improved_)) / 4),
            static_cast<float>(best_z_)};
  }

  size_t DrawSoftmax(const std::vector<double>& scores) {
    const double most = *std::ranges::max_element(scores);
    double all = 0;
    for (double score : scores) all += std::exp(score - most);
    double rest = random().Uniform() * all;
    size_t chosen = 0;
    while (chosen + 1 < scores.size() && (rest -= std::exp(scores[chosen] - most)) >= 0) ++chosen;
    return chosen;
  }

  struct ValueMean {
    double sum = 0;
    int count = 0;
  };

  Coordinates coordinates_;
  const Policy& policy_;
  std::vector<PolicyStep>* trace_;
  std::vector<uint64_t> observed_;
  size_t since_improved_ = 0;
  std::unordered_map<uint64_t, std::vector<float>> pending_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> neighbours_;
  // of the decision at hand
  std::vector<Row> rows_;
  std::vector<float> best_;
  double best_z_ = 0;
  std::vector<std::vector<ValueMean>> values_;
  /// And 1 / (1 + rank) of the leader next to it, 0: none
  std::vector<std::pair<uint64_t, float>> candidates_;
};

}  // namespace

const Policy& Policy::BuiltIn() {
  static const Policy policy{
      Mlp(kPolicyFeatures, kPolicyHidden, {std::begin(kBuiltIn), std::end(kBuiltIn)})};
  return policy;
}

std::unique_ptr<Strategy> MakePolicySearch(std::string name,
                                           std::shared_ptr<const SpaceIndex> index,
                                           SearchOptions options, const Policy& policy,
                                           std::vector<PolicyStep>* trace) {
  return std::make_unique<PolicySearch>(std::move(name), std::move(index), std::move(options),
                                        policy, trace);
}

std::unique_ptr<Strategy> MakePpo(std::string name, std::shared_ptr<const SpaceIndex> index,
                                  SearchOptions options) {
  const Policy& policy = options.policy ? *options.policy : Policy::BuiltIn();
  return MakePolicySearch(std::move(name), std::move(index), std::move(options), policy, nullptr);
}

}  // namespace atunner
