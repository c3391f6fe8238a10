// Memory of the virtual GPU, as recording and applying look at it.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "atunner/capture/recording.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::program {

// NOLINTBEGIN(performance-no-int-to-ptr): a device address is the host address of the byte.
class VirtualMemory : public capture::ProgramMemory {
 public:
  explicit VirtualMemory(const vgpu::VirtualGpu& gpu) : gpu_(gpu) {}

  std::optional<Allocation> Find(uint64_t address) const override {
    const auto range = gpu_.memory().Find(address);
    if (!range) return std::nullopt;
    return Allocation{range->base, range->end - range->base};
  }
  std::pair<uint64_t, uint64_t> Bounds() const override { return gpu_.memory().Bounds(); }
  Status Read(uint64_t address, std::span<char> to) const override {
    std::memcpy(to.data(), reinterpret_cast<const void*>(address), to.size());
    return {};
  }
  bool IsUndefined(uint64_t address, uint64_t bytes) const override {
    return gpu_.memory().IsUndefined(address, bytes);
  }
  Status Write(uint64_t address, std::span<const char> from) override {
    std::memcpy(reinterpret_cast<void*>(address), from.data(), from.size());
    return {};
  }

 private:
  const vgpu::VirtualGpu& gpu_;
};
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace atunner::program
