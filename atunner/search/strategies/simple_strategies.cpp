#include "atunner/search/strategies/simple_strategies.h"

namespace atunner {
namespace {

class Exhaustive : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  bool Learns() const override { return false; }
  std::optional<uint64_t> Propose() override {
    while (next_ < index().size() && IsAsked(next_)) ++next_;
    return next_;
  }

 private:
  uint64_t next_ = 0;
};

class RandomSearch : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  bool Learns() const override { return false; }
  std::optional<uint64_t> Propose() override { return std::nullopt; }
};

class LatinHypercube : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  bool Learns() const override { return false; }
  std::optional<uint64_t> Propose() override {
    if (next_ == kRound || strata_.empty()) StartRound();
    std::vector<double> wanted;
    for (size_t p = 0; p < strata_.size(); ++p) {
      const auto values = static_cast<double>(index().space().parameters[p].values.size());
      wanted.push_back(
          (static_cast<double>(strata_[p][next_]) + random().Uniform()) / kRound * values - 0.5);
    }
    ++next_;
    return index().Near(wanted);
  }

 private:
  static constexpr size_t kRound = 32;  // samples that share the strata

  void StartRound() {
    strata_.assign(index().parameters(), std::vector<size_t>(kRound));
    for (auto& order : strata_) {
      for (size_t i = 0; i < kRound; ++i) {
        const size_t j = random().Below(i + 1);
        order[i] = order[j];
        order[j] = i;
      }
    }
    next_ = 0;
  }

  std::vector<std::vector<size_t>> strata_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> MakeExhaustive(std::string name, std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions options) {
  return std::make_unique<Exhaustive>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakeRandom(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options) {
  return std::make_unique<RandomSearch>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakeLatinHypercube(std::string name,
                                             std::shared_ptr<const SpaceIndex> index,
                                             SearchOptions options) {
  return std::make_unique<LatinHypercube>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
