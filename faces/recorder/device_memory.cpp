#include "faces/recorder/device_memory.h"

#include <fmt/format.h>

#include <cstring>

namespace atunner::recorder {
namespace {

Status Check(int code, std::string_view call) {
  if (code == cuda::kSuccess) return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("{} failed with error {} of CUDA", call, code));
}

char* HostPointer(uint64_t address) {
  return reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void DeviceMemory::Add(uint64_t base, uint64_t bytes, bool host) {
  if (base != 0 && bytes != 0) allocations_[base] = {bytes, host, false};
}

void DeviceMemory::Remove(uint64_t base) { allocations_.erase(base); }

void DeviceMemory::RemoveDeviceMemory() {
  std::erase_if(allocations_, [](const auto& item) { return !item.second.host; });
  discovered_ = 0;
}

void DeviceMemory::Discover(uint64_t address) {
  constexpr uint64_t kLowest = 1 << 20;  // smaller numbers are no addresses
  if (address < kLowest || Find(address) || driver_.cuMemGetAddressRange_v2 == nullptr) return;
  DevicePointer base = 0;
  size_t bytes = 0;
  if (driver_.cuMemGetAddressRange_v2(&base, &bytes, address) != 0 || bytes == 0) return;
  allocations_[base] = {bytes, false, true};
  ++discovered_;
}

void DeviceMemory::ForgetDiscovered() {
  if (discovered_ == 0) return;
  std::erase_if(allocations_, [](const auto& item) { return item.second.discovered; });
  discovered_ = 0;
}

std::optional<capture::ProgramMemory::Allocation> DeviceMemory::Find(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  const auto& [base, known] = *--after;
  if (address - base >= known.bytes) return std::nullopt;
  return Allocation{base, known.bytes};
}

std::pair<uint64_t, uint64_t> DeviceMemory::Bounds() const {
  if (allocations_.empty()) return {0, 0};
  const auto& [base, known] = *allocations_.rbegin();
  return {allocations_.begin()->first, base + known.bytes};
}

bool DeviceMemory::IsHost(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [base, known] = *--after;
  return known.host && address - base < known.bytes;
}

Status DeviceMemory::Wait() const {
  if (waited_) return {};
  ATUNNER_RETURN_IF_ERROR(Check(driver_.cuCtxSynchronize(), "cuCtxSynchronize"));
  waited_ = true;
  return {};
}

Status DeviceMemory::Read(uint64_t address, std::span<char> to) const {
  ATUNNER_RETURN_IF_ERROR(Wait());
  if (IsHost(address)) {
    std::memcpy(to.data(), HostPointer(address), to.size());
    return {};
  }
  return Check(driver_.cuMemcpyDtoH_v2(to.data(), address, to.size()), "cuMemcpyDtoH");
}

Status DeviceMemory::Write(uint64_t address, std::span<const char> from) {
  ATUNNER_RETURN_IF_ERROR(Wait());
  if (IsHost(address)) {
    std::memcpy(HostPointer(address), from.data(), from.size());
    return {};
  }
  return Check(driver_.cuMemcpyHtoD_v2(address, from.data(), from.size()), "cuMemcpyHtoD");
}

}  // namespace atunner::recorder
