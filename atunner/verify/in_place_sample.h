// In-out tensors where only some blocks of a launch are executed.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "atunner/verify/task_buffers.h"

namespace atunner {

/// In-out tensors around such a launch: elements that still hold their inputs pass for unwritten
/// outputs.
class InPlaceSample {
 public:
  /// Keeps the inputs.
  static Result<InPlaceSample> Before(Device& device, const TaskBuffers& buffers);
  /// Poisons what was not changed.
  Status Mask(Device& device);
  /// Puts back what Mask found.
  Status Unmask(Device& device);

 private:
  std::vector<std::pair<const TaskBuffers::Tensor*, std::vector<std::byte>>> inputs_;
  std::vector<std::vector<std::byte>> outputs_;
};

}  // namespace atunner
