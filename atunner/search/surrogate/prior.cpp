#include "atunner/search/surrogate/prior.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace atunner {
namespace {

constexpr size_t kFewestTrials = 10;  // successful trials that a run needs
constexpr size_t kMostRows = 800;     // rows of a run: half are its best, the rest random
constexpr size_t kTrees = 64;
constexpr size_t kMostLeaders = 8;
constexpr uint64_t kMostCosts = 1 << 15;  // larger spaces are sampled

/// Position of every value of a past parameter among those of the present one; nullopt where a text
/// is missing.
std::optional<std::vector<uint16_t>> Translate(const Parameter& past, const Parameter& present) {
  std::vector<uint16_t> positions;
  for (const Value& value : past.values) {
    const auto same = std::ranges::find_if(present.values,
                                           [&](const Value& v) { return LooselyEqual(v, value); });
    if (same != present.values.end()) {
      positions.push_back(static_cast<uint16_t>(same - present.values.begin()));
      continue;
    }
    const auto distance = [&](const Value& v) { return std::fabs(ToDouble(v) - ToDouble(value)); };
    const auto nearest = std::ranges::min_element(present.values, {}, distance);
    if (!std::isfinite(distance(*nearest))) return std::nullopt;
    positions.push_back(static_cast<uint16_t>(nearest - present.values.begin()));
  }
  return positions;
}

struct Row {
  std::vector<uint16_t> positions;
  double value = 0;  ///< standardised log time
  bool failed = false;
};

/// Translates configurations of an earlier run's space into positions of the present one.
class SpaceTranslation {
 public:
  /// nullopt when the parameters are not the same, or a text of the earlier space is missing.
  static std::optional<SpaceTranslation> Make(const ParameterSpace& past,
                                              const ParameterSpace& present) {
    if (past.parameters.size() != present.parameters.size()) return std::nullopt;
    SpaceTranslation translation(past);
    for (const Parameter& parameter : present.parameters) {
      const int at = past.Find(parameter.name);
      if (at < 0) return std::nullopt;
      auto values = Translate(past.parameters[static_cast<size_t>(at)], parameter);
      if (!values) return std::nullopt;
      translation.parameters_.push_back({static_cast<size_t>(at), *std::move(values)});
    }
    return translation;
  }

  /// Empty when the configuration is not one of the earlier space.
  std::vector<uint16_t> PositionsOf(const Configuration& configuration) const {
    if (configuration.values.size() != parameters_.size()) return {};
    std::vector<uint16_t> positions;
    for (const auto& [at, values] : parameters_) {
      const auto& listed = past_.parameters[at].values;
      const auto value = std::ranges::find(listed, configuration.values[at]);
      if (value == listed.end()) return {};
      positions.push_back(values[static_cast<size_t>(value - listed.begin())]);
    }
    return positions;
  }

 private:
  struct Translated {
    size_t at = 0;                 ///< index of the parameter in the earlier space
    std::vector<uint16_t> values;  ///< position in the present space of each of its values
  };

  explicit SpaceTranslation(const ParameterSpace& past) : past_(past) {}

  const ParameterSpace& past_;
  std::vector<Translated> parameters_;
};

/// The run's trials in the present space, best first; empty when it is of another kernel or too
/// short.
std::vector<Row> RowsOf(const PastRun& run, const SpaceIndex& index) {
  const auto translation = SpaceTranslation::Make(run.space, index.space());
  if (!translation) return {};
  std::set<std::pair<double, uint64_t>> ranking;
  std::vector<Row> rows;
  for (const Observation& trial : run.trials) {
    Row row;
    row.positions = translation->PositionsOf(trial.configuration);
    if (row.positions.size() != index.parameters()) continue;
    row.failed = !trial.objective_ns || !(*trial.objective_ns > 0) ||
                 !std::isfinite(*trial.objective_ns);
    if (!row.failed) {
      row.value = std::log(*trial.objective_ns);
      ranking.emplace(row.value, rows.size());
    }
    rows.push_back(std::move(row));
  }
  if (ranking.size() < kFewestTrials) return {};
  const ValueScale scale(ranking);
  for (Row& row : rows) row.value = row.failed ? scale.top : scale.Of(row.value);
  std::ranges::stable_sort(rows, {}, &Row::value);
  return rows;
}

/// At most kMostRows: the best half of them, the rest at random.
std::vector<Row> Thinned(std::vector<Row> rows, Random& random) {
  for (size_t i = kMostRows / 2; i < rows.size() && rows.size() > kMostRows; ++i)
    std::swap(rows[i], rows[i + random.Below(rows.size() - i)]);
  rows.resize(std::min(rows.size(), kMostRows));
  return rows;
}

}  // namespace

std::shared_ptr<const Prior> Prior::Make(std::shared_ptr<const SpaceIndex> index,
                                         std::span<const PastRun> runs, uint64_t seed) {
  std::shared_ptr<Prior> prior(new Prior(std::move(index)));
  const SpaceIndex& space = *prior->index_;
  Random random(seed);
  std::vector<float> x;
  std::vector<double> y;
  std::vector<Row> best;
  for (const PastRun& run : runs) {
    std::vector<Row> rows = Thinned(RowsOf(run, space), random);
    for (const Row& row : rows) {
      const std::vector<float> point = prior->coordinates_.OfPositions(row.positions);
      x.insert(x.end(), point.begin(), point.end());
      y.push_back(row.value);
    }
    rows.resize(std::min<size_t>(rows.size(), 64));
    std::ranges::copy_if(rows, std::back_inserter(best),
                         [](const Row& row) { return !row.failed; });
  }
  if (x.empty()) return nullptr;
  prior->forest_.Fit(x, prior->coordinates_.size(), y, kTrees, random);
  prior->has_runs_ = true;
  std::ranges::stable_sort(best, {}, &Row::value);
  for (const Row& row : best) prior->AddLeader(space.IndexOfPositions(row.positions));
  return prior;
}

void Prior::AddLeader(uint64_t at) {
  if (leaders_.size() == kMostLeaders || at >= index_->size()) return;
  if (!NextToALeader(at)) leaders_.push_back(at);
}

size_t Prior::Differences(uint64_t at, const std::vector<uint16_t>& there) const {
  const std::vector<uint16_t> here = index_->PositionsAt(at);
  size_t count = 0;
  for (size_t p = 0; p < here.size(); ++p) count += here[p] != there[p];
  return count;
}

bool Prior::NextToALeader(uint64_t at) const {
  const std::vector<uint16_t> here = index_->PositionsAt(at);
  return std::ranges::any_of(leaders_,
                             [&](uint64_t leader) { return Differences(leader, here) <= 1; });
}

double Prior::Of(uint64_t at) const {
  const auto cost = cost_ ? cost_(index_->At(at)) : std::nullopt;
  const double by_cost = cost && *cost > 0 ? costs_.Of(std::log(*cost)) : 0;
  if (!has_runs_) return by_cost;
  const double by_runs = forest_.Predict(coordinates_.Of(at)).mean;
  return cost ? (by_cost + by_runs) / 2 : by_runs;
}

/// Among configurations of equal cost the one nearest to `options.first` is taken.
void Prior::RankByCost(const SearchOptions& options) {
  Random random(options.seed);
  const bool all = index_->size() <= kMostCosts;
  std::set<std::pair<double, uint64_t>> ranking;
  for (uint64_t i = 0; i < std::min(index_->size(), kMostCosts); ++i) {
    const uint64_t at = all ? i : index_->Draw(random);
    const auto cost = options.cost(index_->At(at));
    if (cost && *cost > 0 && std::isfinite(*cost)) ranking.emplace(std::log(*cost), at);
  }
  if (ranking.empty()) return;
  cost_ = options.cost;
  costs_ = ValueScale(ranking);
  const uint64_t first = options.first ? index_->IndexOf(*options.first) : index_->size();
  if (first < index_->size()) leaders_.push_back(first);
  const std::vector<uint16_t> usual = index_->PositionsAt(leaders_.empty() ? ranking.begin()->second
                                                                           : first);
  for (auto at = ranking.begin(); at != ranking.end() && leaders_.size() < kMostLeaders;) {
    constexpr double kSame = 1e-9;
    uint64_t likest = at->second;
    const double cost = at->first;
    for (; at != ranking.end() && at->first < cost + kSame; ++at) {
      if (Differences(at->second, usual) < Differences(likest, usual)) likest = at->second;
    }
    if (!NextToALeader(likest)) leaders_.push_back(likest);
  }
}

std::shared_ptr<const Prior> Prior::WithCost(std::shared_ptr<const Prior> runs,
                                             std::shared_ptr<const SpaceIndex> index,
                                             const SearchOptions& options) {
  if (!options.cost) return runs;
  std::shared_ptr<Prior> prior(runs ? new Prior(*runs) : new Prior(std::move(index)));
  const std::vector<uint64_t> found = std::exchange(prior->leaders_, {});
  prior->RankByCost(options);
  if (!prior->cost_) return runs;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(std::min(2 * i + 1, prior->leaders_.size()));
    prior->leaders_.insert(prior->leaders_.begin() + place, found[i]);
  }
  return prior;
}

}  // namespace atunner
