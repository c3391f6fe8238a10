// What a node of GPUs computes and moves, for predictions of whole steps. All times that are made
// of it are predicted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/model/value/device_profile.h"
#include "atunner/planning/comm/comm_table.h"

namespace atunner::planning {

/// Time of a collective: alpha + volume / bandwidth, where the volume of a ring is what each GPU
/// sends: 2 (n - 1) / n of the buffer for an all-reduce, half of that for the other two.
struct LinkModel {
  double alpha_us = 20;  ///< of a small all-reduce over two GPUs
  double step_us = 3;    ///< more for each further GPU
  double bus_gbps = 20;  ///< bus bandwidth of a large all-reduce
  std::string source;    ///< where the numbers are from
};

struct ClusterProfile {
  int gpus = 1;  ///< of one node
  DeviceProfile device;
  LinkModel link;
  /// Shares of the peaks that real kernels reach: assumptions, as predictions of steps show them
  double product_share = 0.65, memory_share = 0.8;
  /// Share of the communication of data parallelism that runs beside the backward pass
  double overlap_share = 0.9;
};

/// Numbers for GPUs with NVLink and others. Sources: all-reduces of 64 MB on a DGX H100 (365 GB/s
/// of bus bandwidth on 8 GPUs, 274 on 2; 37 us for small ones on 8); others by the ratio of their
/// links' nominal bandwidth.
LinkModel LinkOf(const DeviceProfile& device);

/// Least squares over NCCL's own all-reduces of a measured table (by its times, relatively).
/// kInvalidInput if it has fewer than two sizes.
Result<LinkModel> FitLink(const CommTable& table);

/// "8xH200" as count and name. kInvalidInput for other forms; `field` names the place.
Result<std::pair<int, std::string>> ParseGpus(std::string_view text, const std::string& field);

double AllReduceUs(const LinkModel& link, double bytes, int gpus);
/// `bytes` of the whole buffer.
double GatherUs(const LinkModel& link, double bytes, int gpus);
/// From one GPU to another.
double SendUs(const LinkModel& link, double bytes);

}  // namespace atunner::planning
