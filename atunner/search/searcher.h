// The interface of search strategies, by ask and tell: a searcher proposes configurations, and gets
// their results. It knows no device and no compiler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/search/space/space_index.h"

namespace atunner {

struct Observation {
  Configuration configuration;
  std::optional<double> objective_ns;  ///< nullopt: it failed
  double relative_error = 0;           ///< standard error of the time over the time; 0: exact
  /// Further objectives, in the order of the run's; smaller is better
  std::vector<double> others = {};
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  virtual std::string_view name() const = 0;
  /// False when results do not change what it proposes.
  virtual bool learns() const { return true; }
  /// Up to `n` configurations that were neither proposed nor observed before; fewer when the space
  /// is exhausted.
  virtual std::vector<Configuration> Ask(size_t n) = 0;
  /// Results may come in any order, also for configurations that were not proposed (a resumed run).
  /// A second result of a configuration replaces the first when its relative error is smaller.
  virtual void Tell(const Observation& observation) = 0;
};

class Prior;
struct Policy;

struct SearchOptions {
  uint64_t seed = 1;
  std::optional<Configuration> first;  ///< proposed before anything else
  /// A rough cost model: the cheapest configurations are proposed early, and the model is part of
  /// the prior. nullopt: unknown.
  std::function<std::optional<double>(const Configuration&)> cost;
  size_t objectives = 1;  ///< with several a Pareto front is looked for (pareto.h)
  /// The prior from earlier runs (prior.h); nullptr: there is none.
  std::shared_ptr<const Prior> prior = nullptr;
  /// The policy for the strategy `ppo` (ppo.h); nullptr: the one that is built in.
  std::shared_ptr<const Policy> policy = nullptr;
};

struct StrategyInfo {
  std::string name;
  std::string meaning;
};
std::vector<StrategyInfo> Strategies();

/// kInvalidInput lists the strategies.
Result<std::unique_ptr<Searcher>> MakeSearcher(std::string_view strategy,
                                               std::shared_ptr<const SpaceIndex> index,
                                               SearchOptions options);

}  // namespace atunner
