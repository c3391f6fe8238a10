// Choosing the next candidates. A searcher knows no device: it is asked, and it is told.
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
  /// False: asks for the same whatever it is told.
  virtual bool learns() const { return true; }
  /// Up to `n` configurations that were neither asked nor told before; fewer when the space is
  /// exhausted.
  virtual std::vector<Configuration> Ask(size_t n) = 0;
  /// In any order; what was never asked is welcome (resume, warm start); duplicates do no harm. A
  /// second result of a configuration counts when it is better known than the first.
  virtual void Tell(const Observation& observation) = 0;
};

class Prior;
struct Policy;

struct SearchOptions {
  uint64_t seed = 1;
  std::optional<Configuration> first;  ///< asked before anything else
  /// A rough cost: what it says is the cheapest comes first, and it is believed as `prior` is;
  /// nullopt = unknown.
  std::function<std::optional<double>(const Configuration&)> cost;
  size_t objectives = 1;  ///< of several a front is looked for (pareto.h)
  /// What earlier runs found (prior.h); nullptr: nothing is known
  std::shared_ptr<const Prior> prior = nullptr;
  /// Of the strategy `ppo` (ppo.h); nullptr: the one that is built in
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
