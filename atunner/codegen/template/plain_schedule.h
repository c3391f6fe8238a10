// What no schedule family computes: one simple kernel per node, the baseline kernels of the graph.
#pragma once

#include <memory>

#include "atunner/base/result.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

/// A schedule with one configuration, "kernels=plain", which reports show. kUnsupported if the task
/// has no baseline kernels.
Result<std::unique_ptr<ScheduleTemplate>> PlainSchedule(const KernelSpec& spec,
                                                        const DeviceProfile& profile);

}  // namespace atunner
