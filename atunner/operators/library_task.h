// Tasks of one operator of the library, for families that compute it as a whole.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// Is `spec` what the library makes of its operator `name` with these shapes of arguments? Its
/// graph is compared, so that no other graph of that name passes.
bool IsLibraryTask(const KernelSpec& spec, std::string_view name,
                   std::vector<std::vector<int64_t>> shapes);

/// Of an argument, at the task's own size; empty for one that is not there.
std::vector<int64_t> ExtentsOf(const KernelSpec& spec, std::string_view argument);

/// The number of an operator's setting, or `fallback` for 0 and where it is not given.
double SettingOr(const KernelSpec& spec, std::string_view name, double fallback);

}  // namespace atunner
