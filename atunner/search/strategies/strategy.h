// The base class of strategies. It keeps the configurations that were proposed and observed and
// their ranking, and fulfils the contract of Searcher.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/search/searcher.h"

namespace atunner {

/// A derived class proposes configurations and observes results. Whatever it proposes, Ask()
/// returns no configuration twice, and returns some until the space is exhausted.
class Strategy : public Searcher {
 public:
  Strategy(std::string name, std::shared_ptr<const SpaceIndex> index, SearchOptions options);

  std::string_view name() const final { return name_; }
  bool learns() const final { return Learns(); }
  std::vector<Configuration> Ask(size_t n) final;
  void Tell(const Observation& observation) final;

  /// Ask and Tell by index, for strategies that are made of others.
  std::optional<uint64_t> AskOne();
  void ObserveOne(uint64_t at, std::optional<double> log_time, double error = 0);
  /// Another strategy has proposed the configuration.
  void MarkAsked(uint64_t at);

 protected:
  /// The next proposal. When it is known already, Propose() is called a few more times, then a
  /// uniform draw takes its place. nullopt asks for that draw at once.
  virtual std::optional<uint64_t> Propose() = 0;
  virtual void OnAsked(uint64_t) {}
  /// False when the strategy uses neither results nor earlier runs.
  virtual bool Learns() const { return true; }
  /// Called once per configuration, proposed or not (a resumed run), and once more when a success
  /// follows a failure. nullopt: it failed.
  virtual void OnObserved(uint64_t, std::optional<double> /*log_time*/) {}
  /// Called when the configuration was measured again with a smaller error.
  virtual void OnRefined(uint64_t, double /*log_time*/) {}

  const SpaceIndex& index() const { return *index_; }
  const SearchOptions& options() const { return options_; }
  Random& random() { return random_; }
  bool IsAsked(uint64_t at) const { return asked_.contains(at); }
  bool Exhausted() const { return asked_.size() >= index_->size(); }
  size_t asked_count() const { return asked_.size(); }
  /// Pairs of the logarithm of time and the index, best first.
  const std::set<std::pair<double, uint64_t>>& ranking() const { return ranking_; }
  /// nullptr: no result yet; nullopt: it failed.
  const std::optional<double>* ResultOf(uint64_t at) const;
  const std::unordered_map<uint64_t, std::optional<double>>& results() const { return results_; }
  /// Standard error of the logarithm of its time.
  double ErrorOf(uint64_t at) const {
    const auto entry = errors_.find(at);
    return entry == errors_.end() ? 0.0 : entry->second;
  }
  /// The valid configuration next to the middle of every list of values.
  uint64_t Middle() const;
  /// A uniform draw among the configurations not proposed yet; nullopt when there is none.
  std::optional<uint64_t> DrawNew();
  /// The one of `draws` new configurations with the largest `distance`. With a cost model only the
  /// cheapest third of the draws is considered.
  template <class Distance>
  std::optional<uint64_t> DrawFar(int draws, const Distance& distance);

 private:
  std::vector<std::pair<double, uint64_t>> DrawCheap(int draws);
  std::optional<uint64_t> WarmStart() const;
  bool IsInBetterHalf(const std::optional<double>& log_time) const;
  void Refine(uint64_t at, double log_time, double error);

  std::string name_;
  std::shared_ptr<const SpaceIndex> index_;
  SearchOptions options_;
  Random random_;
  std::optional<uint64_t> first_;
  std::unordered_set<uint64_t> asked_;
  std::unordered_map<uint64_t, std::optional<double>> results_;
  std::unordered_map<uint64_t, double> errors_;  ///< standard errors of results that are not exact
  std::set<std::pair<double, uint64_t>> ranking_;
};

template <class Distance>
std::optional<uint64_t> Strategy::DrawFar(int draws, const Distance& distance) {
  std::optional<uint64_t> best;
  double farthest = -1;
  for (const auto& [cost, at] : DrawCheap(draws)) {
    const double here = distance(at);
    if (here <= farthest) continue;
    farthest = here;
    best = at;
  }
  return best;
}

}  // namespace atunner
