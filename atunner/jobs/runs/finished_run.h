// The end of a tuned run: its folder, its files, and its result.
#pragma once

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/store/store.h"
#include "atunner/tune/tune_result.h"

namespace atunner::jobs {

/// The folder of a run's artifact, made if it is missing; `wanted` may be empty.
Result<Path> ArtifactFolder(const Path& wanted, const RunRecord& run, const Services& services);

/// The run's files are written into `out`, and its result is put together and sent as an event.
Result<RunResult> FinishRun(const Path& out, const RunRecord& run, const TuneResult& result,
                            const ScheduleTemplate& schedule, const DeviceProfile& profile,
                            Json summary, const EventSink& events);

}  // namespace atunner::jobs
