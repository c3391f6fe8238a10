#include "atunner/search/strategies/portfolio.h"

#include <cmath>

#include "atunner/search/strategies/bayes.h"
#include "atunner/search/strategies/ensemble.h"
#include "atunner/search/strategies/forest_search.h"
#include "atunner/search/strategies/local_search.h"
#include "atunner/search/strategies/population.h"
#include "atunner/search/strategies/tree_parzen.h"

namespace atunner {
namespace {

class Auto : public Ensemble {
 public:
  Auto(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Ensemble(std::move(name), std::move(space), std::move(search_options)) {
    Add(MakeBayes, "bayes");
    Add(MakeForest, "forest");
  }

 protected:
  size_t Choose() override { return asked_count() > kForestFrom && asked_count() % 3 == 0; }

 private:
  static constexpr size_t kForestFrom = 20;
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
