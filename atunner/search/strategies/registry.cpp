#include "atunner/search/searcher.h"
#include "atunner/search/strategies/bayes.h"
#include "atunner/search/strategies/forest_search.h"
#include "atunner/search/strategies/local_search.h"
#include "atunner/search/strategies/pareto.h"
#include "atunner/search/strategies/population.h"
#include "atunner/search/strategies/portfolio.h"
#include "atunner/search/strategies/ppo.h"
#include "atunner/search/strategies/simple_strategies.h"
#include "atunner/search/strategies/tree_parzen.h"
#include "atunner/search/surrogate/prior.h"

namespace atunner {
namespace {

struct Entry {
  std::string_view name;
  std::string_view meaning;
  MakeStrategy make;
};

/// By name.
constexpr Entry kStrategies[] = {
    {"annealing", "simulated annealing over neighbours, reheated when cold", MakeAnnealing},
    {"auto", "the default: bayes and forest in turns", MakeAuto},
    {"bayes", "Gaussian process on log time with expected improvement; failures are learned",
     MakeBayes},
    {"differential", "differential evolution, best/1/bin", MakeDifferential},
    {"exhaustive", "every valid configuration in order", MakeExhaustive},
    {"forest", "expected improvement by randomised regression trees", MakeForest},
    {"genetic", "genetic algorithm, steady state", MakeGenetic},
    {"greedy", "first improvement among neighbours, random restarts", MakeGreedy},
    {"iterated", "the same, restarted near the best", MakeIterated},
    {"latin", "Latin hypercube samples, one after another", MakeLatinHypercube},
    {"parzen", "tree-structured Parzen estimator", MakeTreeParzen},
    {"portfolio", "a bandit over the others, which share what they learn", MakePortfolio},
    {"ppo", "a policy trained on recorded spaces by proximal policy optimisation", MakePpo},
    {"random", "uniform, without repeats", MakeRandom},
    {"swarm", "particle swarm", MakeParticleSwarm},
    {"tabu", "the best neighbour not visited lately, better or not", MakeTabu},
};

}  // namespace

std::vector<StrategyInfo> Strategies() {
  std::vector<StrategyInfo> infos;
  for (const Entry& entry : kStrategies)
    infos.push_back({std::string(entry.name), std::string(entry.meaning)});
  return infos;
}

Result<std::unique_ptr<Searcher>> MakeSearcher(std::string_view strategy,
                                               std::shared_ptr<const SpaceIndex> index,
                                               SearchOptions options) {
  options.prior = Prior::WithCost(std::move(options.prior), index, options);
  std::string names;
  for (const Entry& entry : kStrategies) {
    if (entry.name == strategy && options.objectives > 1)
      return MakeScalarised(std::string(entry.name), entry.make, std::move(index), options);
    if (entry.name == strategy)
      return entry.make(std::string(entry.name), std::move(index), std::move(options));
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Invalid("unknown strategy '" + std::string(strategy) + "'", "request.strategy",
                 "choose one of " + names);
}

}  // namespace atunner
