#include "atunner/tune/judge_pool.h"

#include <algorithm>
#include <chrono>

namespace atunner {
namespace {

constexpr std::chrono::milliseconds kPoll{2};

/// A deferred result counts as done: it is computed when the caller takes it.
bool IsDone(const std::future<Judged>& judged, std::chrono::milliseconds wait) {
  return judged.wait_for(wait) != std::future_status::timeout;
}

}  // namespace

JudgePool::~JudgePool() {
  for (Busy& busy : busy_) {
    if (busy.judged.wait_for(std::chrono::seconds(0)) != std::future_status::deferred)
      busy.judged.wait();
  }
}

Status JudgePool::Begin(const JudgeTask& task) {
  std::vector<std::future<Status>> begun;
  for (Judge* judge : judges_)
    begun.push_back(std::async(policy_, [judge, &task] { return judge->Begin(task); }));
  Status first;
  for (std::future<Status>& one : begun) {
    Status status = one.get();
    if (!status && first) first = std::move(status);
  }
  return first;
}

void JudgePool::Start(Assignment job, const JudgeOrder& order) {
  size_t free = 0;
  const auto is_busy = [&](const Busy& busy) { return busy.judge == free; };
  while (std::ranges::any_of(busy_, is_busy)) ++free;
  const auto work = [this, free, job = std::move(job), order] {
    const double start = clock_.Now();
    Result<JudgeAnswer> answer = judges_[free]->Examine(*job.candidate, order);
    return Judged{job, std::move(answer), clock_.Now() - start};
  };
  busy_.push_back({free, std::async(policy_, work)});
}

bool JudgePool::IsReady(std::chrono::milliseconds timeout) const {
  const auto is_done = [](const Busy& busy) { return IsDone(busy.judged, {}); };
  if (busy_.empty() || std::ranges::any_of(busy_, is_done)) return !busy_.empty();
  return IsDone(busy_.front().judged, timeout) || std::ranges::any_of(busy_, is_done);
}

Judged JudgePool::Take() {
  while (true) {
    for (auto busy = busy_.begin(); busy != busy_.end(); ++busy) {
      if (!IsDone(busy->judged, kPoll)) continue;
      Judged judged = busy->judged.get();
      busy_.erase(busy);
      return judged;
    }
  }
}

}  // namespace atunner
