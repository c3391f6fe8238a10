#include "atunner/jobs/plans/step_order.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace atunner::jobs {
namespace {

/// So many steps are looked at as one: a product, a rounding, a sum of gradients, an update.
constexpr size_t kLongestChain = 4;

int64_t PlacedBytes(const PlanBuffer& buffer) {
  if (buffer.kind != PlanBuffer::Kind::kIntermediate) return 0;
  return static_cast<int64_t>(PlanAligned(buffer.Bytes()));
}

/// The buffers that a step uses, each once.
std::vector<size_t> UsedBuffers(const PlanStep& step) {
  std::set<size_t> used(step.scratch.begin(), step.scratch.end());
  for (const auto* tensors : {&step.reads, &step.writes}) {
    for (const PlanTensor& tensor : *tensors) used.insert(tensor.buffer);
  }
  return {used.begin(), used.end()};
}

/// What lives while steps run one after another.
class LiveMemory {
 public:
  explicit LiveMemory(const ExecutionPlan& plan)
      : users_(plan.buffers.size(), 0), live_(plan.buffers.size(), false) {
    for (const PlanBuffer& buffer : plan.buffers) bytes_.push_back(PlacedBytes(buffer));
    for (const PlanStep& step : plan.steps) {
      used_.push_back(UsedBuffers(step));
      for (const size_t buffer : used_.back()) ++users_[buffer];
    }
  }

  /// Bytes that the step takes, less those that it is the last to use.
  int64_t Change(size_t step) const {
    int64_t change = 0;
    for (const size_t buffer : used_[step]) {
      if (!live_[buffer]) change += bytes_[buffer];
      if (users_[buffer] == 1) change -= bytes_[buffer];
    }
    return change;
  }

  void Run(size_t step) {
    for (const size_t buffer : used_[step]) {
      if (!live_[buffer]) now_ += bytes_[buffer];
      live_[buffer] = true;
    }
    peak_ = std::max(peak_, now_);
    for (const size_t buffer : used_[step]) {
      if (--users_[buffer] == 0) now_ -= bytes_[buffer], live_[buffer] = false;
    }
  }

  /// Undoes the last Run, but for the peak.
  void TakeBack(size_t step, const std::vector<bool>& were_live, int64_t were) {
    for (size_t i = 0; i < used_[step].size(); ++i) {
      ++users_[used_[step][i]];
      live_[used_[step][i]] = were_live[i];
    }
    now_ = were;
  }

  std::vector<bool> LiveOf(size_t step) const {
    std::vector<bool> found;
    for (const size_t buffer : used_[step]) found.push_back(live_[buffer]);
    return found;
  }

  int64_t now() const { return now_; }
  int64_t peak() const { return peak_; }

 private:
  std::vector<int64_t> bytes_;             ///< of buffers; 0 for the caller's
  std::vector<std::vector<size_t>> used_;  ///< by step
  std::vector<size_t> users_;              ///< by buffer: steps that are still to run
  std::vector<bool> live_;
  int64_t now_ = 0, peak_ = 0;
};

/// The steps that must run behind each step.
std::vector<std::vector<size_t>> FollowersOf(const ExecutionPlan& plan) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<std::set<size_t>> followers(plan.steps.size());
  std::vector<size_t> writer(plan.buffers.size(), kNone);
  std::vector<std::vector<size_t>> readers(plan.buffers.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const PlanTensor& tensor : plan.steps[i].reads) {
      if (writer[tensor.buffer] != kNone) followers[writer[tensor.buffer]].insert(i);
      readers[tensor.buffer].push_back(i);
    }
    for (const PlanTensor& tensor : plan.steps[i].writes) {
      if (writer[tensor.buffer] != kNone) followers[writer[tensor.buffer]].insert(i);
      for (const size_t reader : readers[tensor.buffer]) followers[reader].insert(i);
      readers[tensor.buffer].clear();
      writer[tensor.buffer] = i;
    }
  }
  std::vector<std::vector<size_t>> lists;
  for (size_t i = 0; i < followers.size(); ++i) {
    followers[i].erase(i);
    lists.emplace_back(followers[i].begin(), followers[i].end());
  }
  return lists;
}

class StepOrder {
 public:
  explicit StepOrder(const ExecutionPlan& plan)
      : memory_(plan), followers_(FollowersOf(plan)), waits_for_(plan.steps.size(), 0) {
    for (const auto& list : followers_) {
      for (const size_t follower : list) ++waits_for_[follower];
    }
    for (size_t i = 0; i < waits_for_.size(); ++i) {
      if (waits_for_[i] == 0) ready_.insert(i);
    }
  }

  std::vector<size_t> Run() {
    while (!ready_.empty()) {
      for (const size_t step : NextSteps()) Take(step);
    }
    return std::move(order_);
  }

 private:
  /// The chain that frees most, if one frees at least what it takes, else the first step.
  std::vector<size_t> NextSteps() {
    std::vector<size_t> best{*ready_.begin()};
    int64_t least = 1;
    for (const size_t step : ready_) {
      std::vector<size_t> chain;
      const int64_t change = ChangeOfChain(step, chain);
      if (change < least) least = change, best = std::move(chain);
    }
    return best;
  }

  /// The change by the step and those behind it, up to where it is least.
  int64_t ChangeOfChain(size_t step, std::vector<size_t>& chain) {
    struct Done {
      size_t step;
      std::vector<bool> live;
      int64_t now;
    };
    std::vector<Done> done;
    int64_t change = 0, least = std::numeric_limits<int64_t>::max();
    size_t best = 0;
    std::optional<size_t> next = step;
    while (next && done.size() < kLongestChain) {
      change += memory_.Change(*next);
      done.push_back({*next, memory_.LiveOf(*next), memory_.now()});
      Release(*next);
      memory_.Run(*next);
      if (change < least) least = change, best = done.size();
      next = CheapestFollower(*next);
    }
    for (size_t i = done.size(); i-- > 0;) {
      if (i < best) chain.insert(chain.begin(), done[i].step);
      memory_.TakeBack(done[i].step, done[i].live, done[i].now);
      for (const size_t follower : followers_[done[i].step]) ++waits_for_[follower];
    }
    return least;
  }

  void Release(size_t step) {
    for (const size_t follower : followers_[step]) --waits_for_[follower];
  }

  std::optional<size_t> CheapestFollower(size_t step) const {
    std::optional<size_t> found;
    for (const size_t follower : followers_[step]) {
      if (waits_for_[follower] != 0) continue;
      if (!found || memory_.Change(follower) < memory_.Change(*found)) found = follower;
    }
    return found;
  }

  void Take(size_t step) {
    ready_.erase(step);
    memory_.Run(step);
    order_.push_back(step);
    for (const size_t follower : followers_[step]) {
      if (--waits_for_[follower] == 0) ready_.insert(follower);
    }
  }

  LiveMemory memory_;
  std::vector<std::vector<size_t>> followers_;
  std::vector<size_t> waits_for_;  ///< by step: how many must run before it
  std::set<size_t> ready_;
  std::vector<size_t> order_;
};

}  // namespace

uint64_t LiveBytes(const ExecutionPlan& plan) {
  LiveMemory memory(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) memory.Run(i);
  return static_cast<uint64_t>(memory.peak());
}

void OrderForMemory(ExecutionPlan& plan) {
  ExecutionPlan ordered = plan;
  ordered.steps.clear();
  for (const size_t step : StepOrder(plan).Run()) ordered.steps.push_back(plan.steps[step]);
  if (LiveBytes(ordered) < LiveBytes(plan)) plan = std::move(ordered);
}

}  // namespace atunner::jobs
