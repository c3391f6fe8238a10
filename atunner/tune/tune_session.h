// The loop: ask, compile, judge, tell, remember. The only place that knows the order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/compile/compiler.h"
#include "atunner/judge/judge.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/search/searcher.h"
#include "atunner/store/store.h"
#include "atunner/tune/compile_ahead.h"
#include "atunner/tune/judge_lanes.h"
#include "atunner/tune/judged_before.h"
#include "atunner/tune/leaders.h"
#include "atunner/tune/objectives.h"
#include "atunner/tune/tune_event.h"
#include "atunner/tune/virtual_check.h"

namespace atunner {

struct TuneRequest {
  const ScheduleTemplate* schedule = nullptr;
  DeviceProfile profile;  ///< of the target
  std::string arch;
  std::string strategy = "auto";
  Budget budget;
  std::vector<Objective> objectives = {Objective::kTime};  ///< the first one decides who wins
  uint64_t seed = 1;
  int compile_threads = 2;
  bool plain = true;                 ///< compare the winner with the plain kernel
  std::vector<std::string> vendors;  ///< libraries to compare the winner with
  /// Learn from runs of the store that are clearly alike (transfer.h)
  bool transfer = false;
  /// One thing after another, so that equal seeds give equal runs where equal candidates get equal
  /// answers. Otherwise the devices come first: candidates are taken as they are compiled, books
  /// are kept while a device judges, and one that has nothing new to judge measures the leaders
  /// again.
  bool in_order = true;
};

/// Where the time went, s. Devices' times are summed over devices, and overlap with the rest.
struct TimeSpent {
  double search = 0;       ///< wall time from the first proposal to the last answer
  double for_compile = 0;  ///< a device had nothing to judge but leaders, if those
  double for_proposals = 0;
  double books = 0;  ///< storing trials and telling the listener
  double verifying = 0;
  double timing = 0;
  double handing_over = 0;  ///< to and from the judge's process
  double again = 0;         ///< of the three above, for leaders
  // Outside of the search:
  double plain = 0;      ///< the kernel to beat, before it
  double finals = 0;     ///< the best with new inputs, and on the virtual GPU
  double baselines = 0;  ///< pairs with the kernel to beat and with libraries
};

struct TuneResult {
  std::vector<Trial> trials;
  /// Of several objectives: numbers within `trials` of those that none beats
  std::vector<size_t> front;
  std::optional<Trial> best;  ///< re-verified with inputs nobody saw before, measured at length
  std::optional<CandidateKernel> winner;
  std::optional<RenderedKernel> winner_source;
  std::vector<Baseline> baselines;
  uint64_t space_size = 0;
  double floor_ns = 0;         ///< physical floor of the task on the target
  double seconds = 0;          ///< this session
  double judge_seconds = 0;    ///< of them, devices were judging; summed over devices
  double compile_seconds = 0;  ///< summed over threads
  TimeSpent spent;
  std::string stop_reason;
};

class TuneSession {
 public:
  using Listener = std::function<void(const TuneEvent&)>;

  /// One judge per device, all of the same kind, at least one; the first one also judges baselines
  /// and finalists. With a `virtual_judge` whoever is to win is examined on a virtual GPU too
  /// (VirtualCheck).
  TuneSession(TuneRequest request, Compiler& compiler, const std::vector<Judge*>& judges,
              Clock& clock, Judge* virtual_judge = nullptr)
      : request_(std::move(request)),
        compiler_(compiler),
        judge_(*judges.front()),
        lanes_(judges, clock, request_.in_order),
        clock_(clock),
        virtual_check_(virtual_judge, clock) {}

  /// `store` and `run` remember the trials; those of an earlier, interrupted session are told and
  /// not repeated. `stop` ends the session early with what was found.
  Result<TuneResult> Run(Store* store, const RunRecord& run, const std::stop_token& stop,
                         const Listener& listener);

 private:
  /// Where results go and candidates come from.
  struct Desk {
    Searcher& searcher;
    Store* store;
    const RunRecord& run;
    const std::stop_token& stop;
    const Listener& listener;
    CompileAhead& ahead;
  };

  Compiled CompileOne(const Configuration& configuration, const std::stop_token& stop = {}) const;
  Result<std::optional<Trial>> StartOne(Compiled compiled);
  std::optional<Trial> StartJudging(CandidateKernel candidate, Trial trial);
  Status FinishOne(Desk& desk);
  Status NextStep(Desk& desk);
  bool AwaitAnswer(Desk& desk);
  Status StartReady(Desk& desk);
  Status StartCompiled(Compiled compiled, Desk& desk);
  bool StartAgain();
  void Hear(Trial trial, Desk& desk);
  void HearAgain(Judged judged, Desk& desk);
  Status WriteDown(Desk& desk);
  size_t Depth(const Searcher& searcher) const;
  void Refill(Desk& desk);
  JudgeOrder ScreeningOrder() const;
  bool MinimisesTimeAlone() const { return request_.objectives == std::vector{Objective::kTime}; }
  bool WantsEnergy() const;
  /// Of inputs that no trial of the search saw.
  uint64_t FinalSeed() const { return Mix64(request_.seed ^ 0xf17a1); }
  Observation ObservationOf(const Trial& trial) const;
  Status Loop(Desk& desk);
  Result<std::string> LearnFromOthers(Store& store, const RunRecord& run,
                                      std::shared_ptr<const SpaceIndex> index,
                                      SearchOptions& options) const;
  std::string StopReason(const std::stop_token& stop) const;
  Status MeasureNaive(const Listener& listener);
  Status ChooseWinner(const Listener& listener);
  void CheckVirtually(const CandidateKernel& candidate, Trial& trial, const Listener& listener);
  Status CompareBaselines(const Listener& listener);
  std::optional<double> BestNs() const;
  void Emit(const Listener& listener, TuneEvent event) const;

  TuneRequest request_;
  Compiler& compiler_;
  Judge& judge_;
  JudgeLanes lanes_;
  Clock& clock_;
  VirtualCheck virtual_check_;
  TuneResult result_;
  std::optional<CandidateKernel> naive_;
  JudgedBefore judged_before_;
  int64_t tickets_ = 0;                 ///< of candidates that went to a judge, in order
  std::map<int64_t, int64_t> numbers_;  ///< ticket → number of the trial, once it is one
  Leaders leaders_;
  std::optional<int64_t> again_;              ///< the leader that is measured again
  std::vector<int64_t> improved_;             ///< leaders whose new results are not written down
  std::optional<Configuration> first_guess_;  ///< what was asked for first, until it is a trial
  size_t written_ = 0;                        ///< trials
  double started_ = 0;
  double search_started_ = 0;  ///< baselines done
  double spent_before_ = 0;
};

}  // namespace atunner
