// The tuning sessions of one job: that of the whole task, and before it one for each part of a
// divided schedule.
#pragma once

#include <stop_token>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/store/store.h"
#include "atunner/tune/round_session.h"
#include "atunner/tune/tune_session.h"

namespace atunner::jobs {

class TuningSessions {
 public:
  /// The arguments must outlive this object. `stop` ends a session early, with what was found.
  /// `one_for_all_tasks`: judges keep their processes between sessions (Devices::MakeJudge).
  TuningSessions(const Target& target, const TuningOptions& options, Services& services,
                 const EventSink& events, std::stop_token stop, bool one_for_all_tasks = false)
      : target_(target),
        options_(options),
        services_(services),
        events_(events),
        stop_(std::move(stop)),
        one_for_all_tasks_(one_for_all_tasks) {}

  /// These are asked for candidates before the search of Run; they must outlive it.
  void Propose(std::vector<CandidateSource*> sources) { sources_ = std::move(sources); }
  /// Opens compiler, store and judges.
  Status Open();
  /// The run of this schedule that the store knows, or a new one.
  Result<RunRecord> OpenRun(const ScheduleTemplate& schedule);
  /// Tunes `schedule` and puts the result into the store: `summary` is what the store keeps. With
  /// `compares` the winner is compared with the plain kernel and libraries.
  Result<TuneResult> Run(const ScheduleTemplate& schedule, const Budget& budget, bool compares,
                         RunRecord& run, Json& summary);
  /// A session of this run whose candidates come in rounds. It sends its events to the job's sink.
  /// `schedule` and `run` must outlive it.
  std::unique_ptr<RoundSession> MakeRounds(const ScheduleTemplate& schedule, const Budget& budget,
                                           const RunRecord& run);
  /// Puts a session's result into the store: `summary` is what the store keeps.
  Status CloseRun(const TuneResult& result, const ScheduleTemplate& schedule, RunRecord& run,
                  Json& summary);
  /// Tunes one part after the other, each as a task of its own, so that what the store knows of a
  /// part is not tried again. Returns the best configurations of each part. `budget` becomes what
  /// is left for the whole.
  Result<std::vector<std::vector<Configuration>>> RunParts(const PartitionedSchedule& divided,
                                                           Budget& budget);

 private:
  Status MakeJudges();
  atunner::TuneRequest RequestFor(const ScheduleTemplate& schedule, const Budget& budget,
                                  bool compares) const;
  void MarkFailed(RunRecord& run, const Error& error);
  void Forward(const TuneEvent& event, const ParameterSpace& space, const Budget& budget,
               const RunRecord& run) const;

  const Target& target_;
  const TuningOptions& options_;
  Services& services_;
  const EventSink& events_;
  std::stop_token stop_;
  std::vector<CandidateSource*> sources_;
  bool one_for_all_tasks_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Store> store_;
  std::vector<std::unique_ptr<Judge>> runners_;
  std::vector<Judge*> judges_;
  std::unique_ptr<Judge> examiner_;
};

}  // namespace atunner::jobs
