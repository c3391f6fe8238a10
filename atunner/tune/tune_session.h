// The loop: ask, compile, judge, tell, remember. The only place that knows the order.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/compile/compiler.h"
#include "atunner/judge/judge.h"
#include "atunner/model/schedule_template.h"
#include "atunner/search/searcher.h"
#include "atunner/store/store.h"
#include "atunner/tune/compile_ahead.h"
#include "atunner/tune/judged_before.h"

namespace atunner {

struct TuneRequest {
  const ScheduleTemplate* schedule = nullptr;
  DeviceProfile profile;  ///< of the target
  std::string arch;
  std::string strategy = "auto";
  Budget budget;
  uint64_t seed = 1;
  int compile_threads = 2;
  std::vector<std::string> vendors;  ///< libraries to compare the winner with
  bool transfer = false;             ///< learn from runs of the store that are clearly alike (transfer.h)
};

/// What is told while a session runs.
struct TuneEvent {
  enum class Kind : uint8_t { kStarted, kBaseline, kTrial, kFinalists, kFinished };
  Kind kind = Kind::kTrial;
  const Trial* trial = nullptr;
  const Baseline* baseline = nullptr;
  std::optional<double> best_ns;
  int64_t trials_done = 0;
  double seconds = 0;
  uint64_t space_size = 0;
  std::string text;
};

struct TuneResult {
  std::vector<Trial> trials;
  std::optional<Trial> best;  ///< re-verified with inputs nobody saw before, measured at length
  std::optional<CandidateKernel> winner;
  std::optional<RenderedKernel> winner_source;
  std::vector<Baseline> baselines;
  uint64_t space_size = 0;
  double floor_ns = 0;         ///< physical floor of the task on the target
  double seconds = 0;          ///< this session
  double judge_seconds = 0;    ///< of them, the device was judging
  double compile_seconds = 0;  ///< summed over threads
  std::string stop_reason;
};

class TuneSession {
 public:
  using Listener = std::function<void(const TuneEvent&)>;

  TuneSession(TuneRequest request, Compiler& compiler, Judge& judge, Clock& clock)
      : request_(std::move(request)), compiler_(compiler), judge_(judge), clock_(clock) {}

  /// `store` and `run` remember the trials; those of an earlier, interrupted session are told and not repeated. `stop`
  /// ends the session early with what was found.
  Result<TuneResult> Run(Store* store, RunRecord run, const std::atomic<bool>& stop, const Listener& listener);

 private:
  Compiled CompileOne(const Configuration& configuration, const std::stop_token& stop = {}) const;
  Result<Trial> JudgeOne(Compiled compiled);
  Status Examine(const CandidateKernel& candidate, Trial& trial);
  Status Loop(Searcher& searcher, Store* store, const RunRecord& run, const std::atomic<bool>& stop,
              const Listener& listener);
  Result<std::string> LearnFromOthers(Store& store, const RunRecord& run, std::shared_ptr<const SpaceIndex> index,
                                      SearchOptions& options) const;
  std::string StopReason(const std::atomic<bool>& stop) const;
  Status MeasureNaive(const Listener& listener);
  Status ChooseWinner(const Listener& listener);
  Status CompareBaselines(const Listener& listener);
  std::optional<double> BestNs() const;
  void Emit(const Listener& listener, TuneEvent::Kind kind, const Trial* trial, std::string text) const;

  TuneRequest request_;
  Compiler& compiler_;
  Judge& judge_;
  Clock& clock_;
  TuneResult result_;
  std::optional<CandidateKernel> naive_;
  JudgedBefore judged_before_;
  double started_ = 0;
  double search_started_ = 0;  ///< baselines done
  double spent_before_ = 0;
};

}  // namespace atunner
