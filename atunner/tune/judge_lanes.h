// Several judges at work at once: one per GPU.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/judge/judge.h"
#include "atunner/model/trial/trial.h"

namespace atunner {

/// A trial on its way to a judge.
struct Assignment {
  Trial trial;
  std::shared_ptr<const CandidateKernel> candidate;
  bool again = false;  ///< it has been judged, and is measured once more
};

struct Judged {
  Assignment job;
  Result<JudgeAnswer> answer;
  double seconds = 0;  ///< in the judge
};

/// Each judge works in a thread of its own while candidates last; with one, and in order,
/// everything happens in the caller's thread, in Take.
class JudgeLanes {
 public:
  JudgeLanes(std::vector<Judge*> judges, const Clock& clock, bool in_order)
      : judges_(std::move(judges)),
        clock_(clock),
        policy_(in_order && judges_.size() == 1 ? std::launch::deferred : std::launch::async) {}
  ~JudgeLanes();
  JudgeLanes(const JudgeLanes&) = delete;
  JudgeLanes& operator=(const JudgeLanes&) = delete;

  size_t count() const { return judges_.size(); }
  /// On every judge; the first error.
  Status Begin(const JudgeTask& task);
  bool HasFree() const { return busy_.size() < judges_.size(); }
  size_t busy() const { return busy_.size(); }
  /// HasFree() must hold.
  void Start(Assignment job, const JudgeOrder& order);
  /// Whether Take would not wait; looks for up to `patience`.
  bool IsReady(std::chrono::milliseconds patience = {}) const;
  /// The one that is ready first; busy() must not be 0.
  Judged Take();

 private:
  struct Busy {
    size_t lane = 0;
    std::future<Judged> judged;
  };

  std::vector<Judge*> judges_;
  const Clock& clock_;
  std::launch policy_;
  std::deque<Busy> busy_;
};

}  // namespace atunner
