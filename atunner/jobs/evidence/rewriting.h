// Rewrites a user's kernel until nothing more is gained: explain, rewrite, judge, keep, again.
#pragma once

#include <stop_token>
#include <string>

#include "atunner/jobs/evidence/rewrite_record.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

struct RewriteRequest {
  Path source;             ///< .cu, .toml or T1 .json
  std::string kernel;      ///< which kernel of a .cu; empty: the only one
  bool auto_tune = false;  ///< also search the parameters of the kernel as it was given
  TuningOptions tuning;
};

struct RewriteResult {
  RunResult run;
  RewriteRecord record;
};

/// The artifact's source is the rewritten text where that is faster. The kernel as given is oracle
/// and baseline.
Result<RewriteResult> RewriteKernel(const RewriteRequest& request, Services& services,
                                    const EventSink& events, std::stop_token stop);

/// The same for a template that is read already. `file`: the source as the user has it.
Result<RewriteResult> RewriteSchedule(const ScheduleTemplate& schedule, const Path& file,
                                      bool auto_tune, const Target& target,
                                      const TuningOptions& options, Services& services,
                                      const EventSink& events, std::stop_token stop);

}  // namespace atunner::jobs
