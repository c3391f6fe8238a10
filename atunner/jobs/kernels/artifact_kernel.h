// An artifact's binaries, as a candidate that can be judged or run.
#pragma once

#include "atunner/base/files.h"
#include "atunner/compile/compiler.h"
#include "atunner/jobs/requests/target.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/verify/verifier.h"

namespace atunner::jobs {

/// The cubin where the artifact was made for the target's architecture, else its PTX assembled for
/// the target. Its check sizes come from the family, if a family made it. kInvalidInput where the
/// PTX does not assemble.
Result<CandidateKernel> CandidateOf(const Path& folder, const Artifact& artifact,
                                    const Target& target, Compiler& compiler);

}  // namespace atunner::jobs
