// Counts what each line of a kernel's source costs on the virtual GPU.
#pragma once

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// kInvalidInput where the kernel does not complete.
Result<CountResult> CountLines(const CountRequest& request, Services& services,
                               const EventSink& events);

}  // namespace atunner::jobs
