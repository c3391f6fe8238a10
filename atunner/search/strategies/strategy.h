// What strategies share: which configurations were asked and told, the ranking, and the contract of
// Searcher.
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

/// A strategy says what it would like next and hears results. Whatever it says, no configuration is
/// asked twice, and there is an answer until the space is exhausted.
class Strategy : public Searcher {
 public:
  Strategy(std::string name, std::shared_ptr<const SpaceIndex> index, SearchOptions options);

  std::string_view name() const final { return name_; }
  bool learns() const final { return Learns(); }
  std::vector<Configuration> Ask(size_t n) final;
  void Tell(const Observation& observation) final;

  /// As Ask and Tell, by index: for strategies that are made of others.
  std::optional<uint64_t> AskOne();
  void TellOne(uint64_t at, std::optional<double> log_time, double error = 0);
  /// Somebody else asked for it.
  void MarkAsked(uint64_t at);

 protected:
  /// The next wish. One that is known already is followed by a few more calls, then by a uniform
  /// draw; nullopt asks for the draw at once.
  virtual std::optional<uint64_t> Propose() = 0;
  virtual void OnAsked(uint64_t) {}
  /// False: looks at no result, and starts from none of an earlier run.
  virtual bool Learns() const { return true; }
  /// Once per configuration, asked or not (resume); once more when a success follows a failure.
  /// nullopt: it failed.
  virtual void OnTold(uint64_t, std::optional<double> /*log_time*/) {}
  /// It was measured again and is better known now.
  virtual void OnRefined(uint64_t, double /*log_time*/) {}

  const SpaceIndex& index() const { return *index_; }
  const SearchOptions& options() const { return options_; }
  Random& random() { return random_; }
  bool IsAsked(uint64_t at) const { return asked_.contains(at); }
  bool Exhausted() const { return asked_.size() >= index_->size(); }
  size_t asked_count() const { return asked_.size(); }
  /// Logarithm of time, best first.
  const std::set<std::pair<double, uint64_t>>& ranking() const { return ranking_; }
  /// nullptr: not told; nullopt: it failed.
  const std::optional<double>* ResultOf(uint64_t at) const;
  const std::unordered_map<uint64_t, std::optional<double>>& results() const { return results_; }
  /// Standard error of its logarithm of time.
  double ErrorOf(uint64_t at) const {
    const auto entry = errors_.find(at);
    return entry == errors_.end() ? 0.0 : entry->second;
  }
  /// The middle of every list of values: seldom good, seldom hopeless.
  uint64_t Middle() const;
  /// A uniform draw among those not asked; nullopt when all are.
  std::optional<uint64_t> DrawNew();
  /// Of some draws the one farthest from those given; among the cheaper third where a rough cost is
  /// known.
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
  std::unordered_map<uint64_t, double> errors_;  ///< of those that are not exact
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
