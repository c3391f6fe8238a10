// What a graph costs and which kernels compute it, before anything is tuned.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/value/device_profile.h"
#include "atunner/operators/task.h"

namespace atunner::jobs {

/// A part of a graph: one schedule of one family.
struct PartSummary {
  std::string family;  ///< "product"; "plain kernels" where none schedules it
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  size_t nodes = 0;  ///< of its graph, without inputs
  double bytes = 0;  ///< that it must read and write
  double flops = 0;
  size_t kernels = 0;  ///< launches of its default configuration
};

struct GraphSummary {
  size_t nodes = 0;  ///< of the graph, without inputs
  double bytes = 0;  ///< of its inputs and outputs
  double flops = 0;
  size_t kernels = 0;  ///< launches of the whole
  /// Parts that differ. Equal ones are tuned once, and stand here once.
  std::vector<PartSummary> parts;
};

/// kUnsupported if no kernels compute the graph on this device.
Result<GraphSummary> SummaryOf(const Task& task, const DeviceProfile& profile);

}  // namespace atunner::jobs
