#include "atunner/search/space/level_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atunner {
namespace {

class Ordering {
 public:
  Ordering(const ParameterSpace& space, const std::vector<std::vector<size_t>>& uses)
      : space_(space),
        uses_(uses),
        placed_(space.parameters.size(), false),
        done_(uses.size(), false) {}

  std::vector<size_t> Run() && {
    for (size_t step = 0; step < uses_.size(); ++step) {
      const size_t best = Cheapest();
      done_[best] = true;
      for (size_t p : uses_[best]) Place(p);
    }
    for (size_t p = 0; p < placed_.size(); ++p) Place(p);
    return std::move(order_);
  }

 private:
  void Place(size_t parameter) {
    if (!placed_[parameter]) order_.push_back(parameter);
    placed_[parameter] = true;
  }

  /// {no parameter of it is placed yet, combinations of those that are not placed}: less is better.
  std::pair<bool, double> PriceOf(size_t condition) const {
    double combinations = 1;
    bool touches = order_.empty();
    for (size_t p : uses_[condition]) {
      if (placed_[p])
        touches = true;
      else
        combinations *= static_cast<double>(space_.parameters[p].values.size());
    }
    return {!touches, combinations};
  }

  size_t Cheapest() const {
    size_t best = uses_.size();
    std::pair<bool, double> least{true, INFINITY};
    for (size_t c = 0; c < uses_.size(); ++c) {
      if (done_[c]) continue;
      if (const auto price = PriceOf(c); price < least) {
        least = price;
        best = c;
      }
    }
    if (best < uses_.size()) return best;
    return static_cast<size_t>(std::ranges::find(done_, false) - done_.begin());
  }

  const ParameterSpace& space_;
  const std::vector<std::vector<size_t>>& uses_;
  std::vector<size_t> order_;
  std::vector<bool> placed_;
  std::vector<bool> done_;
};

}  // namespace

std::vector<size_t> ChooseLevelOrder(const ParameterSpace& space,
                                     const std::vector<std::vector<size_t>>& uses) {
  return Ordering(space, uses).Run();
}

}  // namespace atunner
