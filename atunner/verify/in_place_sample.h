// In-out tensors of a launch of which only some blocks are executed.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "atunner/verify/task_buffers.h"

namespace atunner {

/// The judge knows unwritten elements by their poison, but in-out tensors hold inputs. This class
/// keeps the inputs before the launch and afterwards poisons the elements that did not change, so
/// that blocks that did not run count as unwritten.
class InPlaceSample {
 public:
  /// Copies the in-out tensors to the host, before the launch.
  static Result<InPlaceSample> Before(Device& device, const TaskBuffers& buffers);
  /// Poisons the elements that the launch left unchanged.
  Status Mask(Device& device);
  /// Restores the contents from before Mask.
  Status Unmask(Device& device);

 private:
  std::vector<std::pair<const TaskBuffers::Tensor*, std::vector<std::byte>>> inputs_;
  std::vector<std::vector<std::byte>> outputs_;
};

}  // namespace atunner
