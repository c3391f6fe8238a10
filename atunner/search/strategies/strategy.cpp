#include "atunner/search/strategies/strategy.h"

#include <algorithm>
#include <cmath>

#include "atunner/search/surrogate/prior.h"

namespace atunner {
namespace {

constexpr int kProposals = 24;  // calls of Propose() before a uniform draw takes its place
// Leaders of an earlier run that are proposed in turns with the strategy's own first proposals.
constexpr size_t kWarmStarts = 3;
constexpr size_t kCheapStarts = 6;  // cheapest configurations that are proposed first

}  // namespace

Strategy::Strategy(std::string name, std::shared_ptr<const SpaceIndex> index, SearchOptions options)
    : name_(std::move(name)),
      index_(std::move(index)),
      options_(std::move(options)),
      random_(options_.seed) {
  if (options_.first) {
    const uint64_t first = index_->IndexOf(*options_.first);
    if (first < index_->size()) first_ = first;
  }
}

std::optional<uint64_t> Strategy::AskOne() {
  if (Exhausted()) return std::nullopt;
  std::optional<uint64_t> at;
  if (first_ && !IsAsked(*first_)) at = first_;
  if (!at) at = WarmStart();
  for (int i = 0; i < kProposals && !at; ++i) {
    const auto proposal = Propose();
    if (!proposal) break;
    if (!IsAsked(*proposal)) at = proposal;
  }
  if (!at) at = DrawNew();
  if (at) MarkAsked(*at);
  return at;
}

bool Strategy::IsInBetterHalf(const std::optional<double>& log_time) const {
  if (!log_time) return false;
  const auto middle = std::next(ranking_.begin(), static_cast<std::ptrdiff_t>(ranking_.size() / 2));
  return ranking_.size() < 2 || *log_time < middle->first;
}

/// The next leader of the prior. Without a cost model, a leader whose time is in the worse half
/// ends the series.
std::optional<uint64_t> Strategy::WarmStart() const {
  if (!options_.prior || !Learns()) return std::nullopt;
  const bool cheap = options_.prior->knows_cost();
  const bool over = asked_count() >= (cheap ? kCheapStarts : 2 * kWarmStarts);
  if (over || (!cheap && asked_count() % 2 == 0)) return std::nullopt;
  for (uint64_t leader : options_.prior->leaders()) {
    if (!IsAsked(leader)) return leader;
    if (const auto* result = ResultOf(leader);
        !cheap && result != nullptr && !IsInBetterHalf(*result))
      break;
  }
  return std::nullopt;
}

void Strategy::MarkAsked(uint64_t at) {
  if (asked_.insert(at).second) OnAsked(at);
}

std::vector<Configuration> Strategy::Ask(size_t n) {
  std::vector<Configuration> out;
  while (out.size() < n) {
    const auto at = AskOne();
    if (!at) break;
    out.push_back(index_->At(*at));
  }
  return out;
}

void Strategy::ObserveOne(uint64_t at, std::optional<double> log_time, double error) {
  MarkAsked(at);
  const auto [entry, fresh] = results_.try_emplace(at, log_time);
  if (!fresh) {
    if (!log_time) return;
    if (entry->second) {
      if (error < ErrorOf(at)) Refine(at, *log_time, error);
      return;
    }
    entry->second = log_time;
  }
  if (log_time) ranking_.emplace(*log_time, at);
  if (log_time && error > 0) errors_[at] = error;
  OnObserved(at, log_time);
}

void Strategy::Refine(uint64_t at, double log_time, double error) {
  std::optional<double>& known = results_.at(at);
  ranking_.erase({*known, at});
  ranking_.emplace(log_time, at);
  known = log_time;
  errors_[at] = error;
  OnRefined(at, log_time);
}

void Strategy::Tell(const Observation& observation) {
  const uint64_t at = index_->IndexOf(observation.configuration);
  if (at >= index_->size()) return;
  const auto& time = observation.objective_ns;
  // A small relative error of a value is the absolute error of its logarithm.
  ObserveOne(
      at, time && *time > 0 && std::isfinite(*time) ? std::optional(std::log(*time)) : std::nullopt,
      std::max(0.0, observation.relative_error));
}

const std::optional<double>* Strategy::ResultOf(uint64_t at) const {
  const auto entry = results_.find(at);
  return entry == results_.end() ? nullptr : &entry->second;
}

uint64_t Strategy::Middle() const {
  std::vector<double> middle;
  for (const Parameter& parameter : index_->space().parameters)
    middle.push_back(static_cast<double>(parameter.values.size() - 1) / 2);
  return index_->Near(middle);
}

std::optional<uint64_t> Strategy::DrawNew() {
  if (Exhausted()) return std::nullopt;
  for (int tries = 0; tries < 64; ++tries) {
    const uint64_t at = index_->Draw(random_);
    if (!IsAsked(at)) return at;
  }
  // The space is nearly exhausted: take the next new configuration after a random one.
  uint64_t at = index_->Draw(random_);
  while (IsAsked(at)) at = (at + 1) % index_->size();
  return at;
}

std::vector<std::pair<double, uint64_t>> Strategy::DrawCheap(int draws) {
  std::vector<std::pair<double, uint64_t>> drawn;
  for (int i = 0; i < draws; ++i) {
    const auto at = DrawNew();
    if (!at) break;
    const auto cost = options_.cost ? options_.cost(index_->At(*at)) : std::nullopt;
    drawn.emplace_back(cost.value_or(0.0), *at);
  }
  if (!options_.cost) return drawn;
  std::ranges::sort(drawn);
  drawn.resize((drawn.size() + 2) / 3);
  return drawn;
}

}  // namespace atunner
