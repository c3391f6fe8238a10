#include "atunner/search/simple_strategies.h"

namespace atunner {
namespace {

class Exhaustive : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
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
  std::optional<uint64_t> Propose() override { return std::nullopt; }
};

}  // namespace

std::unique_ptr<Strategy> MakeExhaustive(std::string name, std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions options) {
  return std::make_unique<Exhaustive>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakeRandom(std::string name, std::shared_ptr<const SpaceIndex> index, SearchOptions options) {
  return std::make_unique<RandomSearch>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
