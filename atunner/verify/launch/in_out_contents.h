// Copies of in-out tensors, for runs that shall begin with the same contents.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

class InOutContents {
 public:
  /// No copies.
  InOutContents() = default;
  /// The contents of all in-out tensors now. kUnavailable if there is not enough memory.
  static Result<InOutContents> Of(Device& device, const TaskBuffers& buffers);

  bool empty() const { return of_.empty(); }
  /// Writes the contents back.
  Status Restore(Device& device) const;

 private:
  std::vector<std::pair<DeviceAddress, std::unique_ptr<Buffer>>> of_;
};

}  // namespace atunner
