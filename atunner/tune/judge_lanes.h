// Several judges at work at once: one per GPU.
#pragma once

#include <deque>
#include <future>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/judge/judge.h"
#include "atunner/model/trial.h"

namespace atunner {

/// A trial on its way through a judge.
struct Judged {
  Trial trial;
  Result<JudgeAnswer> answer;
  double seconds = 0;  ///< in the judge
};

/// With one judge everything happens in the caller's thread, in Take; with several each works in a thread of its own
/// while candidates last.
class JudgeLanes {
 public:
  JudgeLanes(std::vector<Judge*> judges, const Clock& clock) : judges_(std::move(judges)), clock_(clock) {}
  ~JudgeLanes();
  JudgeLanes(const JudgeLanes&) = delete;
  JudgeLanes& operator=(const JudgeLanes&) = delete;

  size_t count() const { return judges_.size(); }
  /// On every judge; the first error.
  Status Begin(const JudgeTask& task);
  bool HasFree() const { return busy_.size() < judges_.size(); }
  size_t busy() const { return busy_.size(); }
  /// HasFree() must hold.
  void Start(Trial trial, CandidateKernel candidate, const JudgeOrder& order);
  /// Whether Take would not wait.
  bool IsReady() const;
  /// The one that is ready first; busy() must not be 0.
  Judged Take();

 private:
  struct Busy {
    size_t lane = 0;
    std::future<Judged> judged;
  };

  std::vector<Judge*> judges_;
  const Clock& clock_;
  std::deque<Busy> busy_;
};

}  // namespace atunner
