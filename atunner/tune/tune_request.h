// A request to tune a schedule: budget, objectives, methods.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"
#include "atunner/model/trial/trial.h"
#include "atunner/search/candidate_source.h"
#include "atunner/tune/objectives.h"

namespace atunner {

struct TuneRequest {
  const ScheduleTemplate* schedule = nullptr;
  /// Asked for candidates before the search over `schedule`; must outlive the session.
  std::vector<CandidateSource*> sources = {};
  DeviceProfile profile;  ///< of the target
  std::string arch;
  Thoroughness thoroughness = Thoroughness::kSearch;
  std::string strategy = "auto";
  Budget budget;
  std::vector<Objective> objectives = {Objective::kTime};  ///< the first one decides who wins
  uint64_t seed = 1;
  int compile_threads = 2;
  bool plain = true;                 ///< compare the winner with the plain kernel
  std::vector<std::string> vendors;  ///< libraries to compare the winner with
  /// Learn from similar runs in the store (transfer.h).
  bool transfer = false;
  /// True: results are taken in the order of the proposals, so that equal seeds give equal runs
  /// where equal candidates get equal results. False: the devices are kept busy. Candidates are
  /// taken as they are compiled, trials are stored while a device judges, and a device without a
  /// new candidate measures the leaders again.
  bool in_order = true;

  bool MinimisesTimeAlone() const { return objectives == std::vector{Objective::kTime}; }
  bool WantsEnergy() const;
  /// Seed of inputs that no trial of the search was verified with.
  uint64_t FinalSeed() const;
};

}  // namespace atunner
