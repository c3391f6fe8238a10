#include "atunner/search/searcher.h"

#include "atunner/search/asked_set.h"
#include "atunner/search/bayes.h"

namespace atunner {
namespace {

/// All configurations in canonical order.
class Exhaustive : public Searcher {
 public:
  Exhaustive(std::shared_ptr<const SpaceIndex> index, const SearchOptions& options)
      : asked_(std::move(index), options) {}
  std::string_view name() const override { return "exhaustive"; }
  std::vector<Configuration> Ask(size_t n) override {
    std::vector<Configuration> out;
    while (out.size() < n) {
      std::optional<uint64_t> at = asked_.TakeFirst();
      while (!at && next_ < asked_.index().size()) {
        if (!asked_.Contains(next_)) at = next_;
        ++next_;
      }
      if (!at) break;
      asked_.Add(*at);
      out.push_back(asked_.index().At(*at));
    }
    return out;
  }
  void Tell(const Observation& observation) override {
    const uint64_t at = asked_.index().IndexOf(observation.configuration);
    if (at < asked_.index().size()) asked_.Add(at);
  }

 private:
  AskedSet asked_;
  uint64_t next_ = 0;
};

/// Uniform, without replacement.
class RandomSearch : public Searcher {
 public:
  RandomSearch(std::shared_ptr<const SpaceIndex> index, const SearchOptions& options)
      : asked_(std::move(index), options), random_(options.seed) {}
  std::string_view name() const override { return "random"; }
  std::vector<Configuration> Ask(size_t n) override {
    std::vector<Configuration> out;
    while (out.size() < n) {
      std::optional<uint64_t> at = asked_.TakeFirst();
      if (!at) at = asked_.Draw(random_);
      if (!at) break;
      asked_.Add(*at);
      out.push_back(asked_.index().At(*at));
    }
    return out;
  }
  void Tell(const Observation& observation) override {
    const uint64_t at = asked_.index().IndexOf(observation.configuration);
    if (at < asked_.index().size()) asked_.Add(at);
  }

 private:
  AskedSet asked_;
  Random random_;
};

}  // namespace

std::vector<StrategyInfo> Strategies() {
  return {{"bayes", "Gaussian process on log time with expected improvement; failures are learned (default)"},
          {"exhaustive", "every valid configuration in order"},
          {"random", "uniform, without repeats"}};
}

Result<std::unique_ptr<Searcher>> MakeSearcher(std::string_view strategy, std::shared_ptr<const SpaceIndex> index,
                                               SearchOptions options) {
  if (strategy == "exhaustive") return std::make_unique<Exhaustive>(std::move(index), options);
  if (strategy == "random") return std::make_unique<RandomSearch>(std::move(index), options);
  if (strategy == "bayes" || strategy == "auto") return MakeBayes(std::move(index), std::move(options));
  std::string names;
  for (const StrategyInfo& info : Strategies()) names += (names.empty() ? "" : ", ") + info.name;
  return Invalid("unknown strategy '" + std::string(strategy) + "'", "--strategy", "choose one of " + names);
}

}  // namespace atunner
