#include "atunner/search/strategies/pareto.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace atunner {
namespace {

// weight of the others where one objective counts: of equal ones the leaner is better
constexpr double kMinor = 0.05;

bool Beats(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better |= a[i] < b[i];
  }
  return better;
}

class Scalarised : public Searcher {
 public:
  Scalarised(std::string name, MakeStrategy make, std::shared_ptr<const SpaceIndex> index,
             const SearchOptions& options)
      : name_(std::move(name)), index_(std::move(index)), objectives_(options.objectives) {
    SearchOptions own = options;
    own.objectives = 1;
    for (size_t major = 0; major <= objectives_; ++major) {
      std::vector<double> weights(
          objectives_, major == objectives_ ? 1.0 / static_cast<double>(objectives_) : kMinor);
      if (major < objectives_) weights[major] = 1;
      members_.push_back({std::move(weights), make(name_, index_, own)});
      own.seed = Mix64(own.seed);
    }
  }

  std::string_view name() const override { return name_; }

  std::vector<Configuration> Ask(size_t n) override {
    std::vector<Configuration> asked;
    while (asked.size() < n) {
      Strategy& asker = *members_[next_++ % members_.size()].strategy;
      const std::optional<uint64_t> at = asker.AskOne();
      if (!at) break;
      for (const Member& member : members_) member.strategy->MarkAsked(*at);
      asked.push_back(index_->At(*at));
    }
    return asked;
  }

  void Tell(const Observation& observation) override {
    const uint64_t at = index_->IndexOf(observation.configuration);
    if (at >= index_->size()) return;
    std::vector<double> values = {observation.objective_ns.value_or(NAN)};
    values.insert(values.end(), observation.others.begin(), observation.others.end());
    values.resize(objectives_, NAN);
    const bool works = std::ranges::all_of(values,
                                           [](double v) { return std::isfinite(v) && v > 0; });
    for (const Member& member : members_) {
      double sum = 0;
      for (size_t i = 0; works && i < values.size(); ++i)
        sum += member.weights[i] * std::log(values[i]);
      member.strategy->ObserveOne(at, works ? std::optional(sum) : std::nullopt,
                                  member.weights[0] * observation.relative_error);
    }
  }

 private:
  struct Member {
    std::vector<double> weights;
    std::unique_ptr<Strategy> strategy;
  };
  std::string name_;
  std::shared_ptr<const SpaceIndex> index_;
  size_t objectives_;
  std::vector<Member> members_;
  size_t next_ = 0;
};

}  // namespace

std::vector<size_t> ParetoFront(std::span<const std::vector<double>> points) {
  std::vector<size_t> front;
  for (size_t i = 0; i < points.size(); ++i) {
    bool kept = true;
    for (size_t j = 0; j < points.size() && kept; ++j)
      kept = !Beats(points[j], points[i]) && !(j < i && points[j] == points[i]);
    if (kept) front.push_back(i);
  }
  std::ranges::stable_sort(front, {}, [&](size_t i) { return points[i].front(); });
  return front;
}

std::unique_ptr<Searcher> MakeScalarised(std::string name, MakeStrategy make,
                                         std::shared_ptr<const SpaceIndex> index,
                                         const SearchOptions& options) {
  return std::make_unique<Scalarised>(std::move(name), make, std::move(index), options);
}

}  // namespace atunner
