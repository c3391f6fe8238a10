// The search of a tuning session: the loop that the trials come from.
//
// The life of one trial:
//
//   Proposals ──► CompileAhead ──► JudgePool ──► OnResult ──► TrialLog ──► the sources
//    a source      rendered and     verified       the trial    store,       learn from
//    proposes a    compiled in a    and timed on   gets its     listener     the result
//    candidate     thread           a device       number
//
// 1. `Refill` asks for candidates and submits them to the compiler threads. It keeps several
//    candidates ahead of the judges, as many as compiling needs to keep up (`Depth`). More would be
//    proposed without knowing the results before them.
// 2. `StartCompiled` takes a compiled candidate. A trial that ends here needs no device: the source
//    does not compile, or another candidate gave the same binary with the same launches
//    (KnownKernels), whose result it gets. Every other one goes to a judge that is free.
// 3. The judge verifies the kernel, then times it (a GPU) or predicts its time (a virtual GPU).
//    Kernels that are clearly slower than the best so far are abandoned after few samples.
// 4. `OnResult` makes the answer a trial, adds it to the log and reports it to the sources.
//    `TrialLog::Persist` writes it to the store and calls the listener.
//
// There are two orders of doing this (TuneRequest::in_order):
//
//   in order      One thread. Candidates are taken in the order in which they were proposed, so
//                 equal seeds give equal runs. This is for the virtual GPU, where a result does not
//                 depend on when it is computed. A compilation that takes longer than a second is
//                 overtaken.
//   out of order  One thread for each judge. Candidates are taken as their compilations end. A
//   device
//                 gets its next candidate before the last one's result is stored. A device without
//                 a new candidate measures the leaders again (Leaders), which makes the ranking at
//                 the top more certain; such a result replaces the trial's measurement
//                 (`OnRemeasured`).
//
// Example, two compiler threads and one GPU, out of order; c = compiling, J = judging, L =
// measuring a leader again, and the numbers are candidates:
//
//   thread 1   c1 c1 c3 c3 c3 c5 c5 ...
//   thread 2   c2 c2 c2 c4 c4 c6 c6 ...
//   GPU              J1 J2 L1 J4 J3 ...       4 was compiled before 3
//
// The loop ends when `StopReason` gives one: the user, the budget, a time within 4 % of the task's
// physical floor, or a space whose candidates were all tried.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "atunner/tune/compile_ahead.h"
#include "atunner/tune/judge_pool.h"
#include "atunner/tune/known_kernels.h"
#include "atunner/tune/leaders.h"
#include "atunner/tune/proposals.h"
#include "atunner/tune/session_context.h"

namespace atunner {

class SearchPhase {
 public:
  /// All must outlive the object.
  SearchPhase(const SessionContext& context, JudgePool& judges, Proposals& proposals);

  /// Asks for the first candidates and starts to compile them.
  void Refill();
  /// The loop. Sets the result's stop reason. `judges` must have begun with the task.
  Status Run();

 private:
  std::string StopReason() const;
  double SecondsOf(double budget) const;
  size_t Depth() const;
  size_t Room() const;
  JudgeOrder ScreeningOrder() const;

  Status NextStep();
  bool AwaitResult();
  Status StartReady();
  Status StartCompiled(Compiled compiled);
  void StartJudging(Trial trial, CandidateKernel kernel);
  bool StartRemeasuring();

  Status TakeResult();
  void CountTime(const Judged& judged);
  void OnTrial(Trial trial);
  void OnResult(Judged judged);
  void OnRemeasured(Judged judged);

  const SessionContext& context_;
  const TuneRequest& request_;
  TuneResult& result_;
  JudgePool& judges_;
  Proposals& proposals_;
  CompileAhead ahead_;
  KnownKernels known_kernels_;
  Leaders leaders_;
  int64_t tickets_ = 0;                 ///< how many candidates went to a judge
  std::map<int64_t, int64_t> numbers_;  ///< ticket → number of the trial, once it has a result
  std::optional<int64_t> remeasured_;   ///< number of the leader that a judge measures again now
  double started_ = 0;
};

}  // namespace atunner
