// Small artifacts for tests, made of testdata/kernels.ptx: they run on the virtual driver.
#pragma once

#include <string>

#include "atunner/model/artifact/artifact.h"

namespace atunner::loader {

/// y = factor · x over `n` elements, one thread each: dims n (free if asked for), parameter threads
/// = 64.
Artifact ScaleArtifact();
/// y = x / 2 + 1 in two steps with a workspace.
Artifact TwoStepArtifact();
/// y = x · table[i % 4], with the tensor `table` copied to constant memory first.
Artifact TableArtifact();

/// y = x through a tensor map, but for its last element: the number of blocks, which waited for
/// each other. For H200.
Artifact HopperArtifact();

/// Writes `artifact` with the PTX of testdata/`kernels`; a cubin of these bytes if not empty.
Status SaveTestArtifact(const Path& folder, const Artifact& artifact, const std::string& cubin = {},
                        const std::string& kernels = "kernels");

}  // namespace atunner::loader
