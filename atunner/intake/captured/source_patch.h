// A tuned configuration as a change of the program's source.
//
// Example: `#define TILE 16` and a launch <<<(n + 255) / 256, 256>>> with TILE = 32 and block_x =
// 128 become
//
//     -#define TILE 16
//     +#define TILE 32
//     …
//     -  scale<<<(n + 255) / 256, 256>>>(y, x, n);
//     +  scale<<<(n + 127) / 128, 128>>>(y, x, n);
#pragma once

#include <string>

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// The text of `file` with the values of the configuration. What has no place in it, e.g. a block
/// that the host computes, becomes a comment above the launch or the kernel. `kernel` was made by
/// UseSource of the same file. kUnsupported if the file is not the text that was tuned, because
/// headers or macros were expanded.
Result<std::string> PatchedSource(const std::string& text, const std::string& readable,
                                  const UserKernel& kernel, const Configuration& configuration);

/// The changes from one text to another in the unified format of diff, which patch -p1 applies;
/// empty if there are none.
std::string UnifiedDiff(const std::string& before, const std::string& after,
                        const std::string& file);

}  // namespace atunner
