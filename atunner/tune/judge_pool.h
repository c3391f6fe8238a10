// A pool of judges that work at the same time: one per device.
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

/// A trial that waits for its result.
struct Assignment {
  Trial trial;
  std::shared_ptr<const CandidateKernel> candidate;
  bool remeasured = false;  ///< it has a result and is measured once more
};

struct Judged {
  Assignment job;
  Result<JudgeAnswer> answer;
  double seconds = 0;  ///< in the judge
};

/// Each judge examines one candidate at a time, in a thread of its own. With one judge and
/// `in_order` there are no threads: the caller's thread does the work, in Take().
class JudgePool {
 public:
  JudgePool(std::vector<Judge*> judges, const Clock& clock, bool in_order)
      : judges_(std::move(judges)),
        clock_(clock),
        policy_(in_order && judges_.size() == 1 ? std::launch::deferred : std::launch::async) {}
  ~JudgePool();
  JudgePool(const JudgePool&) = delete;
  JudgePool& operator=(const JudgePool&) = delete;

  size_t count() const { return judges_.size(); }
  /// Begins the task on every judge. Returns the first error.
  Status Begin(const JudgeTask& task);
  bool HasFree() const { return busy_.size() < judges_.size(); }
  size_t busy() const { return busy_.size(); }
  /// HasFree() must hold.
  void Start(Assignment job, const JudgeOrder& order);
  /// True when Take() would not wait; waits up to `timeout` for that.
  bool IsReady(std::chrono::milliseconds timeout = {}) const;
  /// The first result that is ready; busy() must not be 0.
  Judged Take();

 private:
  struct Busy {
    size_t judge = 0;  ///< index in judges_
    std::future<Judged> judged;
  };

  std::vector<Judge*> judges_;
  const Clock& clock_;
  std::launch policy_;
  std::deque<Busy> busy_;
};

}  // namespace atunner
