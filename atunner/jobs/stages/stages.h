// Looking inside a tuning job: the value of each step between the task and a verified kernel.
#pragma once

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

/// Makes the stages of the schedule's default configuration up to the last one that `inspection`
/// names, and sends a StageEvent for each stage to dump. The stage to stop after is sent too if
/// none is to be dumped. kInvalidInput where the default configuration does not compile.
Status ShowStages(const ScheduleTemplate& schedule, const Target& target,
                  const Inspection& inspection, Services& services, const EventSink& events);

}  // namespace atunner::jobs
