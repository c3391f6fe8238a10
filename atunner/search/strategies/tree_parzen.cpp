#include "atunner/search/strategies/tree_parzen.h"

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

constexpr size_t kInitial = 12;
constexpr double kGoodShare = 0.15;
constexpr int kDraws = 64;
constexpr double kNextDoor = 0.25;  // of a value's weight goes to each adjacent value
constexpr double kPrior = 1.0;      // observations that the uniform prior counts for

using Density = std::vector<std::vector<double>>;  // per parameter and value

class TreeParzen : public Strategy {
 public:
  TreeParzen(std::string name, std::shared_ptr<const SpaceIndex> space,
             SearchOptions search_options)
      : Strategy(std::move(name), std::move(space), std::move(search_options)) {}

 protected:
  std::optional<uint64_t> Propose() override {
    if (ranking().size() < kInitial) return std::nullopt;
    if (stale_) Estimate();
    stale_ = false;
    std::optional<uint64_t> best;
    double most = -INFINITY;
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t at = index().Near(DrawLikeGood());
      if (IsAsked(at)) continue;
      const std::vector<uint16_t> positions = index().PositionsAt(at);
      double ratio = 0;
      for (size_t p = 0; p < positions.size(); ++p)
        ratio += std::log(good_[p][positions[p]] / bad_[p][positions[p]]);
      if (ratio <= most) continue;
      most = ratio;
      best = at;
    }
    return best;
  }

  void OnObserved(uint64_t, std::optional<double>) override { stale_ = true; }

 private:
  Density Flat() const {
    Density density;
    for (const Parameter& parameter : index().space().parameters) {
      const size_t n = parameter.values.size();
      density.emplace_back(n, kPrior / static_cast<double>(n));
    }
    return density;
  }

  void Count(uint64_t at, Density& density) const {
    const std::vector<uint16_t> positions = index().PositionsAt(at);
    for (size_t p = 0; p < positions.size(); ++p) {
      const size_t here = positions[p];
      const bool ordered = !std::holds_alternative<std::string>(
          index().space().parameters[p].values[here]);
      density[p][here] += 1;
      if (ordered && here > 0) density[p][here - 1] += kNextDoor;
      if (ordered && here + 1 < density[p].size()) density[p][here + 1] += kNextDoor;
    }
  }

  static void Normalise(Density& density) {
    for (auto& values : density) {
      double sum = 0;
      for (double v : values) sum += v;
      for (double& v : values) v /= sum;
    }
  }

  void Estimate() {
    good_ = Flat();
    bad_ = Flat();
    const auto share = static_cast<size_t>(
        std::ceil(kGoodShare * static_cast<double>(ranking().size())));
    const size_t wanted = std::clamp<size_t>(share, 3, 40);
    size_t taken = 0;
    for (const auto& [time, at] : ranking()) Count(at, taken++ < wanted ? good_ : bad_);
    for (const auto& [at, result] : results()) {
      if (!result) Count(at, bad_);
    }
    Normalise(good_);
    Normalise(bad_);
  }

  std::vector<double> DrawLikeGood() {
    std::vector<double> wanted;
    for (const auto& values : good_) {
      double rest = random().Uniform();
      size_t v = 0;
      while (v + 1 < values.size() && (rest -= values[v]) >= 0) ++v;
      wanted.push_back(static_cast<double>(v));
    }
    return wanted;
  }

  Density good_;
  Density bad_;
  bool stale_ = true;
};

}  // namespace

std::unique_ptr<Strategy> MakeTreeParzen(std::string name, std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions options) {
  return std::make_unique<TreeParzen>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
