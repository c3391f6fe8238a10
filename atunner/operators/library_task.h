// Recognises tasks of one operator of the library, for families that have a kernel for all of it.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// True if `spec` is the task that the library makes of operator `name` for these argument shapes.
/// The graphs are compared, so that another graph of that name does not pass.
bool IsLibraryTask(const KernelSpec& spec, std::string_view name,
                   std::vector<std::vector<int64_t>> shapes);

/// The extents of an argument at the task's own dims; empty if there is no such argument.
std::vector<int64_t> ExtentsOf(const KernelSpec& spec, std::string_view argument);

/// The value of a numeric attribute, or `fallback` if it is 0 or missing.
double SettingOr(const KernelSpec& spec, std::string_view name, double fallback);

}  // namespace atunner
