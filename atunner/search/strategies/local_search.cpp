#include "atunner/search/strategies/local_search.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace atunner {
namespace {

void Shuffle(std::vector<uint64_t>& items, Random& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.Below(i)]);
}

/// A configuration, its value, and the neighbours that are not evaluated yet.
class Walk : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  bool started() const { return started_; }
  uint64_t centre() const { return centre_; }
  double value() const { return value_; }

  void MoveTo(uint64_t at, double value, size_t most_neighbours = SIZE_MAX) {
    started_ = true;
    centre_ = at;
    value_ = value;
    left_ = index().Neighbours(at, Neighbourhood::kHamming);
    Shuffle(left_, random());
    if (left_.size() > most_neighbours) left_.resize(most_neighbours);
  }
  void StartAnew() {
    started_ = false;
    left_.clear();
  }
  std::optional<uint64_t> NextNeighbour() {
    while (!left_.empty()) {
      const uint64_t at = left_.back();
      left_.pop_back();
      if (!IsAsked(at)) return at;
    }
    return std::nullopt;
  }

 private:
  bool started_ = false;
  uint64_t centre_ = 0;
  double value_ = 0;
  std::vector<uint64_t> left_;
};

class Descent : public Walk {
 public:
  Descent(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options,
          bool iterated)
      : Walk(std::move(name), std::move(space), std::move(search_options)), iterated_(iterated) {}

 protected:
  std::optional<uint64_t> Propose() override {
    if (!started()) return std::nullopt;
    if (const auto at = NextNeighbour()) return at;
    StartAnew();
    if (!iterated_ || ranking().empty()) return std::nullopt;
    // The number of changes grows while they bring no improvement.
    ++kicks_;
    return Kicked(ranking().begin()->second,
                  2 + std::min<uint64_t>(kicks_ / 4, index().parameters()));
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    if (!log_time) return;
    if (at == ranking().begin()->second) kicks_ = 0;
    if (!started() || *log_time < value()) MoveTo(at, *log_time);
  }

 private:
  uint64_t Kicked(uint64_t at, uint64_t changes) {
    const std::vector<uint16_t> from = index().PositionsAt(at);
    std::vector<double> wanted(from.begin(), from.end());
    for (uint64_t i = 0; i < changes; ++i) {
      const size_t p = random().Below(wanted.size());
      wanted[p] = static_cast<double>(random().Below(index().space().parameters[p].values.size()));
    }
    return index().Near(wanted);
  }

  bool iterated_;
  uint64_t kicks_ = 0;
};

class Tabu : public Walk {
 public:
  using Walk::Walk;

 protected:
  std::optional<uint64_t> Propose() override {
    if (!started()) return std::nullopt;
    if (const auto at = NextNeighbour()) return at;
    std::optional<std::pair<double, uint64_t>> best;
    for (uint64_t at : index().Neighbours(centre(), Neighbourhood::kHamming)) {
      const auto* result = ResultOf(at);
      if (result == nullptr || !*result || std::ranges::find(lately_, at) != lately_.end())
        continue;
      if (!best || std::pair(**result, at) < *best) best = {**result, at};
    }
    if (!best) {
      StartAnew();
      return std::nullopt;
    }
    Go(best->second, best->first);
    return NextNeighbour();
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    if (log_time && !started()) Go(at, *log_time);
  }

 private:
  static constexpr size_t kSample = 16;
  static constexpr size_t kMemory = 40;

  void Go(uint64_t at, double value) {
    lately_.push_back(at);
    if (lately_.size() > kMemory) lately_.pop_front();
    MoveTo(at, value, kSample);
  }

  std::deque<uint64_t> lately_;
};

class Annealing : public Walk {
 public:
  using Walk::Walk;

 protected:
  std::optional<uint64_t> Propose() override {
    if (!started()) return std::nullopt;
    // Steps over configurations with a known result cost no evaluation.
    for (int steps = 0; steps < kFreeSteps; ++steps) {
      if (around_ != centre()) {
        neighbours_ = index().Neighbours(centre(), Neighbourhood::kHamming);
        around_ = centre();
      }
      if (neighbours_.empty()) break;
      const uint64_t at = neighbours_[random().Below(neighbours_.size())];
      if (!IsAsked(at)) return at;
      if (const auto* result = ResultOf(at); result != nullptr && *result) Consider(at, **result);
    }
    temperature_ = kHot;
    StartAnew();
    return std::nullopt;
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    temperature_ = temperature_ * kCooling;
    if (temperature_ < kCold) {
      temperature_ = kHot;
      if (!ranking().empty()) Stand(ranking().begin()->second, ranking().begin()->first);
    }
    if (!log_time) return;
    if (started())
      Consider(at, *log_time);
    else
      Stand(at, *log_time);
  }

 private:
  // Temperatures in units of log time: an increase by a third is accepted with probability 1/e at
  // first, one by a few parts in a thousand at the end.
  static constexpr double kHot = 0.3;
  static constexpr double kCold = 0.004;
  static constexpr double kCooling = 0.97;
  static constexpr int kFreeSteps = 64;

  void Stand(uint64_t at, double value) { MoveTo(at, value, 0); }
  void Consider(uint64_t at, double value_there) {
    const double worse = value_there - value();
    if (worse <= 0 || random().Uniform() < std::exp(-worse / temperature_)) Stand(at, value_there);
  }

  double temperature_ = kHot;
  std::optional<uint64_t> around_;
  std::vector<uint64_t> neighbours_;
};

}  // namespace

std::unique_ptr<Strategy> MakeGreedy(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options) {
  return std::make_unique<Descent>(std::move(name), std::move(index), std::move(options), false);
}

std::unique_ptr<Strategy> MakeIterated(std::string name, std::shared_ptr<const SpaceIndex> index,
                                       SearchOptions options) {
  return std::make_unique<Descent>(std::move(name), std::move(index), std::move(options), true);
}

std::unique_ptr<Strategy> MakeTabu(std::string name, std::shared_ptr<const SpaceIndex> index,
                                   SearchOptions options) {
  return std::make_unique<Tabu>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakeAnnealing(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options) {
  return std::make_unique<Annealing>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
