// Strategies made of several others, which share what they learn.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Every member knows all proposals and observes every result, whichever member proposed it.
class Ensemble : public Strategy {
 public:
  using MakeMember = std::unique_ptr<Strategy> (*)(std::string name,
                                                   std::shared_ptr<const SpaceIndex>,
                                                   SearchOptions);

  Ensemble(std::string name, std::shared_ptr<const SpaceIndex> space, SearchOptions search_options)
      : Strategy(std::move(name), space, search_options),
        space_(std::move(space)),
        own_(std::move(search_options)) {
    own_.first.reset();  // the ensemble asks for it
  }

 protected:
  void Add(MakeMember make, const char* member) {
    own_.seed = random().Next();
    members_.push_back(make(member, space_, own_));
  }
  size_t member_count() const { return members_.size(); }
  /// Index of the member that proposes next.
  virtual size_t Choose() = 0;
  /// Called with the result of a member's proposal.
  virtual void OnResult(size_t /*member*/, std::optional<double> /*log_time*/) {}

  std::optional<uint64_t> Propose() final {
    asker_ = Choose();
    return members_[*asker_]->AskOne();
  }
  void OnAsked(uint64_t at) final {
    for (const auto& member : members_) member->MarkAsked(at);
    if (asker_) asked_by_[at] = *asker_;
    asker_.reset();
  }
  void OnObserved(uint64_t at, std::optional<double> log_time) final {
    for (const auto& member : members_) member->ObserveOne(at, log_time, ErrorOf(at));
    const auto by = asked_by_.find(at);
    if (by == asked_by_.end()) return;
    OnResult(by->second, log_time);
    asked_by_.erase(by);
  }
  void OnRefined(uint64_t at, double log_time) final {
    for (const auto& member : members_) member->ObserveOne(at, log_time, ErrorOf(at));
  }

 private:
  std::shared_ptr<const SpaceIndex> space_;
  SearchOptions own_;
  std::vector<std::unique_ptr<Strategy>> members_;
  std::unordered_map<uint64_t, size_t> asked_by_;
  std::optional<size_t> asker_;  ///< the member whose proposal is being made
};

}  // namespace atunner
