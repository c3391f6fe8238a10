// Expands macros that launch or define kernels.
#pragma once

#include <string>

namespace atunner {

/// Expands the source's own macros with parameters if they contain a launch or a kernel, e.g.
/// LAUNCH(kernel, grid, block, x, n) or DEFINE_KERNEL(add, +). Other macros stay, and line numbers
/// do not change.
std::string WithLaunchesExpanded(const std::string& source);

}  // namespace atunner
