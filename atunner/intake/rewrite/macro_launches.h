// Macros that launch kernels, or define them.
#pragma once

#include <string>

namespace atunner {

/// The source with its own macros with parameters expanded where one stands for a launch or a
/// kernel: LAUNCH(kernel, grid, block, x, n), DEFINE_KERNEL(add, +). All others stay as they are,
/// and lines keep their numbers.
std::string WithLaunchesExpanded(const std::string& source);

}  // namespace atunner
