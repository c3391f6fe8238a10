// Reads what a run found from the store.
#pragma once

#include <string>

#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// The report's text in the wanted format. kNotFound for an unknown run; kInvalidInput for one
/// that failed, was interrupted before it had a summary, or whose summary is damaged.
Result<std::string> MakeReportText(const ReportRequest& request, Services& services);

}  // namespace atunner::jobs
