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
#include "atunner/search/space_index.h"

namespace atunner {

struct Observation {
  Configuration configuration;
  std::optional<double> objective_ns;  ///< nullopt: it failed
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  virtual std::string_view name() const = 0;
  /// Up to `n` configurations that were neither asked nor told before; fewer when the space is exhausted.
  virtual std::vector<Configuration> Ask(size_t n) = 0;
  /// In any order; what was never asked is welcome (resume, warm start); duplicates do no harm.
  virtual void Tell(const Observation& observation) = 0;
};

struct SearchOptions {
  uint64_t seed = 1;
  std::optional<Configuration> first;  ///< asked before anything else
  /// A rough cost for ranking before anything is known; nullopt = unknown.
  std::function<std::optional<double>(const Configuration&)> cost;
};

struct StrategyInfo {
  std::string name;
  std::string meaning;
};
std::vector<StrategyInfo> Strategies();

/// kInvalidInput lists the strategies.
Result<std::unique_ptr<Searcher>> MakeSearcher(std::string_view strategy, std::shared_ptr<const SpaceIndex> index,
                                               SearchOptions options);

}  // namespace atunner
