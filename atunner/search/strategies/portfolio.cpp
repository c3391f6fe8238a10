#include "atunner/search/strategies/portfolio.h"

#include <cmath>

#include "atunner/search/strategies/bayes.h"
#include "atunner/search/strategies/ensemble.h"
#include "atunner/search/strategies/forest_search.h"
#include "atunner/search/strategies/local_search.h"
#include "atunner/search/strategies/population.h"
#include "atunner/search/strategies/simple_strategies.h"
#include "atunner/search/strategies/tree_parzen.h"

namespace atunner {
namespace {

/// The models in turns. Once they have found nothing better for long, more and more proposals are
/// uniform draws: the models would not find what is best in a part of the space that they believe
/// to be slow, and without these draws long runs fall behind random search.
class Auto : public Ensemble {
 public:
  Auto(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Ensemble(std::move(name), std::move(space), std::move(search_options)) {
    Add(MakeBayes, "bayes");
    Add(MakeForest, "forest");
    Add(MakeRandom, "random");
  }

 protected:
  size_t Choose() override {
    if (random().Uniform() < UniformShare()) return kRandom;
    return asked_count() > kForestFrom && asked_count() % 3 == 0 ? kForest : kBayes;
  }

  void OnResult(size_t, std::optional<double> log_time) override {
    if (!log_time || *log_time >= best_) return;
    best_ = *log_time;
    improved_at_ = asked_count();
  }

 private:
  static constexpr size_t kBayes = 0, kForest = 1, kRandom = 2;
  static constexpr size_t kForestFrom = 20;
  static constexpr size_t kPatience = 60;

  /// A half at three times the evaluations that it took to find the best, three quarters at six.
  double UniformShare() const {
    const auto busy = static_cast<double>(improved_at_ + kPatience);
    const auto asked = static_cast<double>(asked_count());
    return asked > 3 * busy ? 1 - 1.5 * busy / asked : 0;
  }

  double best_ = INFINITY;
  size_t improved_at_ = 0;
};

constexpr double kForget = 0.98;  // of credit, per result
constexpr double kCuriosity = 0.3;

class Portfolio : public Ensemble {
 public:
  Portfolio(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Ensemble(std::move(name), std::move(space), std::move(search_options)) {
    Add(MakeBayes, "bayes");
    Add(MakeForest, "forest");
    Add(MakeIterated, "iterated");
    Add(MakeGenetic, "genetic");
    Add(MakeDifferential, "differential");
    Add(MakeAnnealing, "annealing");
    Add(MakeTreeParzen, "parzen");
    credits_.resize(member_count());
  }

 protected:
  size_t Choose() override {
    double all = 1;
    for (const Credit& credit : credits_) all += credit.uses;
    size_t best = 0;
    double most = -INFINITY;
    for (size_t i = 0; i < credits_.size(); ++i) {
      const double uses = credits_[i].uses + 1e-3;
      const double bound = credits_[i].gains / uses +
                           kCuriosity * std::sqrt(std::log(all + 1) / uses);
      if (bound <= most) continue;
      most = bound;
      best = i;
    }
    credits_[best].uses += 1e-2;  // a lost result must not make it look unused for ever
    return best;
  }

  void OnResult(size_t member, std::optional<double> log_time) override {
    for (Credit& credit : credits_) {
      credit.uses *= kForget;
      credit.gains *= kForget;
    }
    credits_[member].uses += 1;
    credits_[member].gains += log_time && IsAmongTheBest(*log_time);
  }

 private:
  struct Credit {
    double uses = 0;
    double gains = 0;
  };

  bool IsAmongTheBest(double log_time) const {
    auto at = ranking().begin();
    std::advance(at, static_cast<long>(ranking().size() / 20));
    return log_time <= at->first;
  }

  std::vector<Credit> credits_;
};

}  // namespace

std::unique_ptr<Strategy> MakeAuto(std::string name, std::shared_ptr<const SpaceIndex> index,
                                   SearchOptions options) {
  return std::make_unique<Auto>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakePortfolio(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options) {
  return std::make_unique<Portfolio>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
