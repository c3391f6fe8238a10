#include "atunner/verify/launch/in_out_contents.h"

namespace atunner {

Result<InOutContents> InOutContents::Of(Device& device, const TaskBuffers& buffers) {
  InOutContents contents;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInOut) continue;
    const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
    ATUNNER_TRY(auto memory, device.Allocate(bytes));
    ATUNNER_RETURN_IF_ERROR(device.CopyWithin(memory->address(), tensor.address, bytes));
    contents.of_.emplace_back(tensor.address, std::move(memory));
  }
  return contents;
}

Status InOutContents::Restore(Device& device) const {
  for (const auto& [address, memory] : of_)
    ATUNNER_RETURN_IF_ERROR(device.CopyWithin(address, memory->address(), memory->bytes()));
  return {};
}

}  // namespace atunner
