#include "atunner/search/searcher.h"

#include "atunner/search/bayes.h"
#include "atunner/search/simple_strategies.h"

namespace atunner {
namespace {

using Make = std::unique_ptr<Strategy> (*)(std::string name, std::shared_ptr<const SpaceIndex>, SearchOptions);

struct Entry {
  std::string_view name;
  std::string_view meaning;
  Make make;
};

/// By name.
constexpr Entry kStrategies[] = {
    {"auto", "the default: see bayes", MakeBayes},
    {"bayes", "Gaussian process on log time with expected improvement; failures are learned", MakeBayes},
    {"exhaustive", "every valid configuration in order", MakeExhaustive},
    {"random", "uniform, without repeats", MakeRandom},
};

}  // namespace

std::vector<StrategyInfo> Strategies() {
  std::vector<StrategyInfo> infos;
  for (const Entry& entry : kStrategies) infos.push_back({std::string(entry.name), std::string(entry.meaning)});
  return infos;
}

Result<std::unique_ptr<Searcher>> MakeSearcher(std::string_view strategy, std::shared_ptr<const SpaceIndex> index,
                                               SearchOptions options) {
  std::string names;
  for (const Entry& entry : kStrategies) {
    if (entry.name == strategy) return entry.make(std::string(entry.name), std::move(index), std::move(options));
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Invalid("unknown strategy '" + std::string(strategy) + "'", "--strategy", "choose one of " + names);
}

}  // namespace atunner
