// Judges an artifact's binaries again.
#pragma once

#include "atunner/jobs/requests/requests.h"
#include "atunner/jobs/requests/results.h"

namespace atunner::jobs {

/// Judges with inputs drawn anew. kNotFound or kInvalidInput for a folder that is no artifact.
Result<VerifyResult> Verify(const VerifyRequest& request, Services& services);

}  // namespace atunner::jobs
