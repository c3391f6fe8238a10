#include "atunner/verify/in_place_sample.h"

#include <algorithm>

namespace atunner {
namespace {

Result<std::vector<std::byte>> Contents(Device& device, const TaskBuffers::Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.shape.bytes));
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(bytes, tensor.address));
  return bytes;
}

}  // namespace

Result<InPlaceSample> InPlaceSample::Before(Device& device, const TaskBuffers& buffers) {
  InPlaceSample sample;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInOut) continue;
    ATUNNER_TRY(std::vector<std::byte> bytes, Contents(device, tensor));
    sample.inputs_.emplace_back(&tensor, std::move(bytes));
  }
  return sample;
}

Status InPlaceSample::Mask(Device& device) {
  for (auto& [tensor, inputs] : inputs_) {
    ATUNNER_TRY(std::vector<std::byte> masked, Contents(device, *tensor));
    outputs_.push_back(masked);
    const size_t size = SizeOf(tensor->spec->dtype);
    for (size_t at = 0; at + size <= masked.size(); at += size) {
      if (std::equal(&inputs[at], &inputs[at] + size, &masked[at]))
        std::fill_n(&masked[at], size, std::byte{PoisonByte(tensor->spec->dtype)});
    }
    ATUNNER_RETURN_IF_ERROR(device.CopyIn(tensor->address, masked));
  }
  return {};
}

Status InPlaceSample::Unmask(Device& device) {
  for (size_t i = 0; i < outputs_.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(device.CopyIn(inputs_[i].first->address, outputs_[i]));
  return {};
}

}  // namespace atunner
