// Carries a described job out through `jobs`, as the command line does with its flags.
#pragma once

#include <stop_token>
#include <string>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/platform/job_request.h"

namespace atunner::platform {

/// The command line that does the same: it is kept in the run's record, so that a person can repeat
/// the run. `file`: the name of the uploaded file, if there is one.
std::string CommandOf(const JobRequest& request, const std::string& file);

/// Runs the job, with its artifact in `out`. `upload`: the uploaded file, for a job that names one.
/// Returns true if there is a correct kernel for every size. Errors name fields as `jobs` does.
Result<bool> RunJob(JobRequest request, const Path& upload, const Path& out,
                    jobs::Services& services, const jobs::EventSink& events, std::stop_token stop);

}  // namespace atunner::platform
