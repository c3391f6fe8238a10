// Small artifacts for tests, made of testdata/kernels.ptx: they run on the virtual driver.
#pragma once

#include <string>

#include "atunner/model/artifact.h"

namespace atunner::loader {

/// y = factor · x over `n` elements, one thread each: dims n (free if asked for), parameter threads = 64.
Artifact ScaleArtifact();
/// y = x / 2 + 1 in two steps with a workspace.
Artifact TwoStepArtifact();
/// y = x · table[i % 4], with the tensor `table` copied to constant memory first.
Artifact TableArtifact();

/// Writes `artifact` with the test kernels' PTX; a cubin of these bytes if not empty.
Status SaveTestArtifact(const Path& folder, const Artifact& artifact, const std::string& cubin = {});

}  // namespace atunner::loader
