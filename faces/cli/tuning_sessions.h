// The tuning sessions of one command: the whole's, and before it one for each part of a divided
// schedule.
#pragma once

#include <stop_token>

#include "atunner/model/schedule/divided_schedule.h"
#include "faces/cli/cli.h"

namespace atunner::cli {

class TuningSessions {
 public:
  /// What is given stays where it is; `stop` ends a session early.
  TuningSessions(const Target& target, const TuneFlags& flags, const Common& common,
                 const std::string& command, std::stop_token stop)
      : target_(target),
        flags_(flags),
        common_(common),
        command_(command),
        stop_(std::move(stop)) {}

  Status Open();
  /// The run of this schedule that the store knows, or a new one.
  Result<RunRecord> OpenRun(const ScheduleTemplate& schedule);
  /// `summary` is what the store gets to know of it. With `compares` the winner is measured beside
  /// others.
  Result<TuneResult> Run(const ScheduleTemplate& schedule, const Budget& budget, bool compares,
                         RunRecord& run, Json& summary);
  /// One part after the other, each as the task that it is; what the store knows of them is not
  /// tried again. `budget` becomes what is left for the whole.
  Result<std::vector<std::vector<Configuration>>> RunParts(const DividedSchedule& divided,
                                                           Budget& budget);

 private:
  const Target& target_;
  const TuneFlags& flags_;
  const Common& common_;
  const std::string& command_;
  std::stop_token stop_;
  TuneRequest request_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Store> store_;
  std::vector<std::unique_ptr<Judge>> runners_;
  std::vector<Judge*> judges_;
  std::unique_ptr<Judge> examiner_;
};

}  // namespace atunner::cli
