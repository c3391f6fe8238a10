// The costs of subgraphs that a partition asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "atunner/graph/partition/partition.h"

namespace atunner::graph {

/// By a key of the subgraph, which is equal for subgraphs that differ in names alone.
class CostCache {
 public:
  explicit CostCache(const SubgraphCost& cost) : cost_(cost) {}
  /// `part` builds the subgraph; it is called only if its cost is not known.
  std::optional<double> Of(const std::string& key, double most,
                           const std::function<Result<ValidGraph>()>& part) {
    const auto [known, fresh] = known_.try_emplace(key);
    auto& [own, asked] = known->second;
    if (fresh || (!own && most > asked)) {
      const auto made = part();
      own = made ? cost_(*made, most) : std::nullopt;
      asked = most;
    }
    return own;
  }

 private:
  const SubgraphCost& cost_;
  /// By key: the cost, if there is one, and the limit that it was asked for with
  std::unordered_map<std::string, std::pair<std::optional<double>, double>> known_;
};

}  // namespace atunner::graph
