// The trials of a run while a session works on it: in memory, in the store, and as events.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/judge/judge.h"
#include "atunner/store/store.h"
#include "atunner/tune/tune_event.h"
#include "atunner/tune/tune_result.h"

namespace atunner {

/// Writes into the trial what the judge found, who took `seconds` for it.
void TakeAnswer(JudgeAnswer answer, double seconds, Trial& trial);

/// Trials are added to memory at once. Persist() stores them and reports them, which may wait until
/// the device is busy again.
class TrialLog {
 public:
  using Listener = std::function<void(const TuneEvent&)>;

  /// Works on `result.trials`. `store` may be null. All must outlive the object.
  TrialLog(Store* store, const RunRecord& run, const Clock& clock, const Listener& listener,
           TuneResult& result)
      : store_(store), run_(run), clock_(clock), listener_(listener), result_(result) {}

  /// Reads the trials of earlier sessions of the run.
  Status LoadEarlier();
  /// Gives the trial the next number.
  void Add(Trial trial);
  const Trial& At(int64_t number) const { return result_.trials[static_cast<size_t>(number - 1)]; }
  /// The trial, to be changed; the next Persist() stores the change.
  Trial& Change(int64_t number);
  Status Persist();

  /// Time of the fastest trial.
  std::optional<double> BestNs() const;
  /// Fills in the progress of the run and calls the listener.
  void Emit(TuneEvent event) const;
  /// Wall time of the run, with earlier sessions.
  double RunSeconds() const { return run_.seconds + SessionSeconds(); }
  double SessionSeconds() const { return clock_.Now() - started_; }

 private:
  Store* store_;
  const RunRecord& run_;
  const Clock& clock_;
  const Listener& listener_;
  TuneResult& result_;
  double started_ = clock_.Now();
  size_t persisted_ = 0;          ///< how many trials are in the store
  std::vector<int64_t> changed_;  ///< numbers of trials whose new results are not stored
};

}  // namespace atunner
