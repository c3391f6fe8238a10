// Looks for hazards of a kernel on the virtual GPU.
#pragma once

#include <stop_token>

#include "atunner/jobs/kernels/loaded_kernel.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// Runs each kernel of the request and collects its hazards. A kernel among several that cannot be
/// run is left out with a KernelRefusedEvent. kInvalidInput where the only kernel cannot be run.
Result<SanitizeResult> Sanitize(const SanitizeRequest& request, Services& services,
                                const EventSink& events, std::stop_token stop);

/// Runs the launches of one kernel and collects their hazards.
Result<SanitizedKernel> SanitizeLoaded(const LoadedKernel& kernel, const Target& target,
                                       Compiler& compiler, const LaunchOptions& options);

}  // namespace atunner::jobs
