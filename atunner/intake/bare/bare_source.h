// A bare .cu: its kernel, arguments, launch and tunables as far as the source says them; the rest
// is asked for in one message that shows the lines to add.
#pragma once

#include "atunner/intake/user_kernel.h"

namespace atunner {

struct SourceOptions {
  /// Which one to tune; empty: the only one, or the one an annotation names
  std::string kernel;
  bool extra_tunables = false;  ///< also the compiler's register limit
  int multiprocessors = 100;    ///< of the target, for grids that may have any size
};

/// `name` is the file's name for messages. Annotations (`// atunner: …`) are described in
/// docs/formats/annotations.md.
Result<UserKernel> ParseBareSource(const std::string& text, const std::string& name,
                                   const SourceOptions& options);

/// Kernels that the host's code of a source launches, in the order of the file; none where an
/// annotation says which one is meant.
std::vector<std::string> LaunchedKernels(const std::string& text);

}  // namespace atunner
