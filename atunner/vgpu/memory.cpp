#include "atunner/vgpu/memory.h"

#include <sys/mman.h>

namespace atunner::vgpu {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRedZone = 65536;  // unmapped on both sides: what our own checks miss must not hit a neighbour

}  // namespace

Memory::~Memory() {
  for (const auto& [address, allocation] : allocations_) ::munmap(allocation.mapping, allocation.mapped);
}

Result<uint64_t> Memory::Allocate(uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  if (bytes > capacity_ - used_) {
    return Fail(ErrorCode::kUnavailable, "out of device memory: " + std::to_string(bytes) + " bytes asked for, " +
                                             std::to_string(capacity_ - used_) + " free of " +
                                             std::to_string(capacity_));
  }
  const uint64_t payload = (bytes + kPage - 1) / kPage * kPage;
  const uint64_t mapped = payload + 2 * kRedZone;
  void* mapping = ::mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return Fail(ErrorCode::kUnavailable, "the system gives no address space for " + std::to_string(bytes) + " bytes");
  char* start = static_cast<char*>(mapping) + kRedZone;
  if (payload > 0 && ::mprotect(start, payload, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(mapping, mapped);
    return Fail(ErrorCode::kUnavailable, "the system gives no memory for " + std::to_string(bytes) + " bytes");
  }
  const auto address = reinterpret_cast<uint64_t>(start);
  allocations_[address] = {bytes, mapping, mapped};
  used_ += bytes;
  return address;
}

void Memory::Free(uint64_t address) {
  const std::unique_lock lock(mutex_);
  const auto at = allocations_.find(address);
  if (at == allocations_.end()) return;
  ::munmap(at->second.mapping, at->second.mapped);
  used_ -= at->second.bytes;
  allocations_.erase(at);
}

uint64_t Memory::free_bytes() const {
  const std::shared_lock lock(mutex_);
  return capacity_ - used_;
}

std::optional<Range> Memory::Find(uint64_t address) const {
  const std::shared_lock lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  --after;
  const Range range{after->first, after->first + after->second.bytes};
  if (address >= range.end) return std::nullopt;
  return range;
}

std::string Memory::Describe(uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  std::string nearest = "there is no allocation near";
  uint64_t best = ~uint64_t{0};
  if (after != allocations_.begin()) {
    const auto& [base, allocation] = *std::prev(after);
    best = address - (base + allocation.bytes);
    if (address < base + allocation.bytes)
      return std::to_string(address - base) + " bytes into an allocation of " + std::to_string(allocation.bytes) +
             " bytes";
    nearest = std::to_string(best) + " bytes after the end of an allocation of " + std::to_string(allocation.bytes) +
              " bytes";
  }
  if (after != allocations_.end() && after->first - address < best) {
    nearest = std::to_string(after->first - address) + " bytes before an allocation of " +
              std::to_string(after->second.bytes) + " bytes";
  }
  return nearest;
}

DeviceHeap::~DeviceHeap() {
  for (const auto& [address, bytes] : live_) memory_.Free(address);
}

uint64_t DeviceHeap::Take(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > limit_ - used_) return 0;
  const auto address = memory_.Allocate(bytes);
  if (!address) return 0;
  live_[*address] = bytes;
  used_ += bytes;
  return *address;
}

bool DeviceHeap::Give(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto at = live_.find(address);
  if (at == live_.end()) return false;
  used_ -= at->second;
  live_.erase(at);
  memory_.Free(address);
  return true;
}

}  // namespace atunner::vgpu
