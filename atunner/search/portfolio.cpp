#include "atunner/search/portfolio.h"

#include <cmath>

#include "atunner/search/bayes.h"
#include "atunner/search/forest_search.h"
#include "atunner/search/local_search.h"
#include "atunner/search/population.h"
#include "atunner/search/tree_parzen.h"

namespace atunner {
namespace {

constexpr double kForget = 0.98;  // of credit, per result
constexpr double kCuriosity = 0.3;

class Portfolio : public Strategy {
 public:
  Portfolio(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Strategy(std::move(name), space, search_options) {
    SearchOptions own = search_options;
    own.first.reset();
    const auto add = [&](auto make, const char* member) {
      own.seed = random().Next();
      members_.push_back({make(member, space, own), 0, 0});
    };
    add(MakeBayes, "bayes");
    add(MakeForest, "forest");
    add(MakeIterated, "iterated");
    add(MakeGenetic, "genetic");
    add(MakeDifferential, "differential");
    add(MakeAnnealing, "annealing");
    add(MakeTreeParzen, "parzen");
  }

 protected:
  std::optional<uint64_t> Propose() override {
    asker_ = Choose();
    return members_[*asker_].strategy->AskOne();
  }

  void OnAsked(uint64_t at) override {
    for (Member& member : members_) member.strategy->MarkAsked(at);
    if (asker_) asked_by_[at] = *asker_;
    asker_.reset();
  }

  void OnTold(uint64_t at, std::optional<double> log_time) override {
    for (Member& member : members_) {
      member.strategy->TellOne(at, log_time);
      member.uses *= kForget;
      member.gains *= kForget;
    }
    const auto by = asked_by_.find(at);
    if (by == asked_by_.end()) return;
    Member& member = members_[by->second];
    member.uses += 1;
    member.gains += log_time && IsAmongTheBest(*log_time);
    asked_by_.erase(by);
  }

 private:
  struct Member {
    std::unique_ptr<Strategy> strategy;
    double uses = 0;
    double gains = 0;
  };

  bool IsAmongTheBest(double log_time) const {
    auto at = ranking().begin();
    std::advance(at, static_cast<long>(ranking().size() / 20));
    return log_time <= at->first;
  }

  size_t Choose() {
    double all = 1;
    for (const Member& member : members_) all += member.uses;
    size_t best = 0;
    double most = -INFINITY;
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& member = members_[i];
      const double uses = member.uses + 1e-3;
      const double bound = member.gains / uses + kCuriosity * std::sqrt(std::log(all + 1) / uses);
      if (bound <= most) continue;
      most = bound;
      best = i;
    }
    members_[best].uses += 1e-2;  // a lost result must not make it look unused for ever
    return best;
  }

  std::vector<Member> members_;
  std::unordered_map<uint64_t, size_t> asked_by_;
  std::optional<size_t> asker_;  ///< whose wish is being asked
};

}  // namespace

std::unique_ptr<Strategy> MakePortfolio(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options) {
  return std::make_unique<Portfolio>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
