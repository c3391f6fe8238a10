// The memory of a prediction: inputs and poison at the task's own size.
//
// A candidate must not be able to tell a prediction from a verification. So inputs are those of the
// family `normal`, and outputs and workspaces hold poison, as there; all seeds are secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

class PredictionBuffers {
 public:
  /// Memory at the task's own size with inputs, filled by the host: the virtual GPU would take
  /// longer, and only a sample of the blocks will read it. Memory beyond the first 512 MiB of a
  /// tensor stays zero, in pages that cost nothing. `device` must outlive the result.
  static Result<PredictionBuffers> Make(PredictingDevice& device, const KernelSpec& spec);

  const TaskBuffers& tensors() const { return tensors_; }
  /// Fills outputs (not in-out tensors), of which an earlier prediction has left parts, and the
  /// plan's workspaces with poison. It repeats with a new secret period, so that the device can
  /// share the pages that nobody writes: 64 MiB take 1 ms instead of 50.
  Status Poison(const BoundPlan& plan);

 private:
  PredictionBuffers(PredictingDevice& device, TaskBuffers tensors)
      : device_(&device), tensors_(std::move(tensors)) {}
  Status FillPoison(DeviceAddress address, DType dtype, uint64_t bytes);

  PredictingDevice* device_;
  TaskBuffers tensors_;
  std::map<DType, std::vector<std::byte>> drawn_;  ///< poison of which tiles are made
};

}  // namespace atunner
