// Sizes that users name, in texts that have names of their own.
#pragma once

#include <functional>
#include <memory>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

using BindTask = std::function<Result<std::unique_ptr<ScheduleTemplate>>(const KernelSpec&)>;

/// What `bind` makes of a task. Where users named its sizes, it is given the task with kSizePrefix
/// before their names, so that they may be called as kernels, parameters and languages call
/// something else.
Result<std::unique_ptr<ScheduleTemplate>> BindWithPrefixedSizes(const KernelSpec& spec,
                                                                const BindTask& bind);

}  // namespace atunner
