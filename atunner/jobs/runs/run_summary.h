// The summary of a finished run in the store, and the report that is made of it.
#pragma once

#include "atunner/model/json/json.h"
#include "atunner/report/report.h"
#include "atunner/store/store.h"
#include "atunner/tune/tune_session.h"

namespace atunner::jobs {

/// The object that the store keeps of a run and `--json` prints.
Json Summary(const RunRecord& run, const TuneResult& result, const ParameterSpace& space,
             const DeviceProfile& profile);

/// The report of a run that has just ended.
Report MakeReport(const RunRecord& run, const TuneResult& result, const KernelSpec& spec,
                  const ParameterSpace& space, const DeviceProfile& profile);

/// kInvalidInput where the summary of a run in the store is not the JSON object that it must be.
Status CheckSummary(const RunRecord& run);

/// The report of a run in the store. kInvalidInput for a run that failed, that was interrupted
/// before it had a summary, or whose summary is damaged.
Result<Report> ReportOf(Store& store, const RunRecord& run);

}  // namespace atunner::jobs
