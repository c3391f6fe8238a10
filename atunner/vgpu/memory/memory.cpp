#include "atunner/vgpu/memory/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace atunner::vgpu {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kTiledBytes = uint64_t{4} << 20;  // from here on MapTiled shares pages
constexpr uint64_t kSkewBytes = 256;                 // the alignment that a GPU's allocations have
// Unmapped bytes on both sides of an allocation: an access that the checks miss must not hit
// another allocation.
constexpr uint64_t kRedZone = 65536;
constexpr uint64_t kMostRetired = uint64_t{1} << 30;
constexpr uint64_t kQuarantine = uint64_t{64} << 20;  // retired first, so that late uses are seen

uint64_t MappedBytes(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage + 2 * kRedZone; }

}  // namespace

bool RaceClock::Ordered(uint32_t serial, uint32_t thread, uint32_t epoch, uint32_t sync,
                        uint64_t time) const {
  const std::lock_guard lock(mutex_);
  const auto at = fences_.find(serial);
  if (time == 0 || at == fences_.end()) return false;
  // Epochs of fences grow, and one that releases the access does not come before it.
  auto fence = std::ranges::lower_bound(at->second, epoch, {}, &Fence::epoch);
  for (; fence != at->second.end() && fence->time <= time; ++fence) {
    if (fence->released.Has(thread, epoch, sync)) return true;
  }
  return false;
}

uint64_t RaceClock::LastFence(uint32_t serial, uint32_t warp, const HappensBefore& before) const {
  const std::lock_guard lock(mutex_);
  const auto at = fences_.find(serial);
  if (at == fences_.end()) return 0;
  for (auto fence = at->second.rbegin(); fence != at->second.rend(); ++fence) {
    if (fence->thread == kWholeBlock || fence->thread / 32 == warp ||
        before.Has(fence->thread, fence->epoch, fence->sync))
      return fence->time;
  }
  return 0;
}

void Memory::Allocation::Unmap() const {
  if (mapping != nullptr) ::munmap(mapping, mapped);
  if (shadow_mapping != nullptr) ::munmap(shadow_mapping, shadow_mapped);
}

std::string Memory::Allocation::Text() const {
  const std::string plain = "an allocation of " + std::to_string(bytes) + " bytes";
  return name.empty() ? plain : "'" + name + "', " + plain;
}

Memory::~Memory() {
  for (const auto& [address, allocation] : allocations_) allocation.Unmap();
  for (const auto& [bytes, retired] : retired_) retired.second.Unmap();
}

Result<uint64_t> Memory::Allocate(uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  return AllocateAt(bytes, 0);
}

Result<uint64_t> Memory::AllocateSkewed(uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  const uint64_t skew = bytes < kTiledBytes ? skewed_[bytes]++ % (kPage / kSkewBytes) : 0;
  return AllocateAt(bytes, skew * kSkewBytes);
}

Result<uint64_t> Memory::AllocateAt(uint64_t bytes, uint64_t skew) {
  if (bytes > capacity_ - used_) {
    return Fail(ErrorCode::kUnavailable,
                "out of device memory: " + std::to_string(bytes) + " bytes asked for, " +
                    std::to_string(capacity_ - used_) + " free of " + std::to_string(capacity_));
  }
  const uint64_t mapped = MappedBytes(bytes + skew);
  const uint64_t payload = mapped - 2 * kRedZone;
  void* mapping = ::mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
  if (mapping == MAP_FAILED)
    return Fail(ErrorCode::kUnavailable,
                "the system gives no address space for " + std::to_string(bytes) + " bytes");
  char* start = static_cast<char*>(mapping) + kRedZone;
  if (payload > 0 && ::mprotect(start, payload, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(mapping, mapped);
    return Fail(ErrorCode::kUnavailable,
                "the system gives no memory for " + std::to_string(bytes) + " bytes");
  }
  const uint64_t address = reinterpret_cast<uint64_t>(start) + skew;
  Allocation& allocation = allocations_[address];
  allocation.bytes = bytes;
  allocation.mapping = mapping;
  allocation.mapped = mapped;
  if (tracks_) AddShadow(allocation, address, payload - skew);
  used_ += bytes;
  return address;
}

std::optional<uint64_t> Memory::Adopt(uint64_t address, uint64_t bytes) {
  constexpr uint64_t kAligned = 256;
  const uint64_t base = address / kAligned * kAligned;
  const uint64_t end = (address + bytes + kAligned - 1) / kAligned * kAligned;
  const std::unique_lock lock(mutex_);
  const auto after = allocations_.lower_bound(end);
  if (after != allocations_.begin()) {
    const auto& [before, allocation] = *std::prev(after);
    if (before + std::max(allocation.bytes, allocation.mapped) > base) return std::nullopt;
  }
  Allocation& allocation = allocations_[base];
  allocation.bytes = end - base;
  if (tracks_) AddShadow(allocation, base, end - base);
  used_ += allocation.bytes;
  return base;
}

namespace {
/// A file in memory that holds `bytes`; -1 if the system gives none.
int MemoryFile(std::span<const std::byte> bytes) {
  const int file = ::memfd_create("tile", MFD_CLOEXEC);
  if (file < 0) return -1;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t wrote = ::write(file, bytes.data() + at, bytes.size() - at);
    if (wrote <= 0) return ::close(file), -1;
    at += static_cast<size_t>(wrote);
  }
  return file;
}
}  // namespace

bool Memory::MapTiled(uint64_t address, uint64_t bytes, std::span<const std::byte> tile) {
  if (bytes < kTiledBytes || tile.empty() || tile.size() % kPage != 0 || address % kPage != 0)
    return false;
  {
    const std::shared_lock lock(mutex_);
    const auto at = allocations_.find(address);
    if (at == allocations_.end() || at->second.mapping == nullptr || at->second.bytes < bytes)
      return false;
  }
  const int file = MemoryFile(tile);
  if (file < 0) return false;
  bool mapped = true;
  for (uint64_t at = 0; mapped && at < bytes; at += tile.size()) {
    const uint64_t pages = (std::min<uint64_t>(tile.size(), bytes - at) + kPage - 1) / kPage;
    mapped = ::mmap(reinterpret_cast<void*>(address + at), pages * kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) != MAP_FAILED;
  }
  ::close(file);
  return mapped;
}

/// Without address space for it the allocation goes unchecked.
void Memory::AddShadow(Allocation& allocation, uint64_t address, uint64_t payload) const {
  const uint64_t writers = payload / 4 * sizeof(WordWriter);
  const uint64_t lines = payload / kShadowLineBytes;
  const uint64_t per_line = sizeof(ShadowLine) + sizeof(LineWrites) + sizeof(LineAccess);
  const uint64_t strong = payload / 4 * sizeof(StrongWriter);
  const uint64_t bytes = std::max(payload + writers + lines * per_line + strong, kPage);
  void* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return;
  allocation.shadow_mapping = mapping;
  allocation.shadow_mapped = bytes;
  auto* start = static_cast<uint8_t*>(mapping);
  auto* of_lines = reinterpret_cast<ShadowLine*>(start + payload + writers);
  auto* of_writes = reinterpret_cast<LineWrites*>(of_lines + lines);
  allocation.shadow = std::make_unique<GlobalShadow>(GlobalShadow{
      address, start, reinterpret_cast<WordWriter*>(start + payload),
      reinterpret_cast<StrongWriter*>(start + payload + writers + lines * per_line), of_lines,
      of_writes, reinterpret_cast<LineAccess*>(of_writes + lines), !tracks_defined_});
}

void Memory::SetName(uint64_t address, const std::string& name) {
  const std::unique_lock lock(mutex_);
  if (const auto at = allocations_.find(address); at != allocations_.end()) at->second.name = name;
}

/// Clears ShadowLine::defined for the bytes from `first` to `end`.
static void ForgetWords(const GlobalShadow& shadow, uint64_t first, uint64_t end) {
  for (uint64_t line = first / kShadowLineBytes; line * kShadowLineBytes < end; ++line) {
    if (shadow.lines[line].defined != 0) shadow.lines[line].defined = 0;
  }
}

void Memory::MarkDefined(uint64_t address, uint64_t bytes, bool defined) {
  if (!tracks_defined_) return;
  const auto range = Find(address);
  if (!range || range->shadow == nullptr) return;
  const GlobalShadow& shadow = *range->shadow;
  if (defined && shadow.complete) return;
  const uint64_t first = address - range->base;
  const uint64_t end = first + std::min(bytes, range->end - address);
  if (defined && first == 0 && end == range->end - range->base) {
    shadow.complete = true;  // a shadow of gigabytes takes no memory then
    return;
  }
  // A complete allocation has no bytes of its own so far.
  if (shadow.complete) std::memset(shadow.defined, 1, range->end - range->base);
  shadow.complete = false;
  std::memset(shadow.defined + first, defined, end - first);
  if (!defined) ForgetWords(shadow, first, end);
}

bool Memory::IsUndefined(uint64_t address, uint64_t bytes) const {
  const auto range = tracks_defined_ ? Find(address) : std::nullopt;
  if (!range || range->shadow == nullptr || range->shadow->complete) return false;
  const uint8_t* defined = range->shadow->defined + (address - range->base);
  return std::memchr(defined, 1, std::min(bytes, range->end - address)) == nullptr;
}

std::pair<uint64_t, uint64_t> Memory::Bounds() const {
  const std::shared_lock lock(mutex_);
  if (allocations_.empty()) return {0, 0};
  const auto& [base, last] = *allocations_.rbegin();
  return {allocations_.begin()->first, base + last.bytes};
}

uint64_t Memory::AddTexture(TextureData texture) {
  const uint64_t handle = next_texture_;
  next_texture_ += 2;
  textures_.emplace(handle, std::make_unique<TextureData>(std::move(texture)));
  return handle;
}

void Memory::RemoveTexture(uint64_t handle) { textures_.erase(handle & ~kSurfaceBit); }

TextureData* Memory::FindTexture(uint64_t handle) const {
  const auto at = textures_.find(handle & ~kSurfaceBit);
  return at == textures_.end() ? nullptr : at->second.get();
}

uint32_t Memory::TakeSerials(uint64_t blocks) {
  const std::unique_lock lock(mutex_);
  if (blocks >= ~uint32_t{0} - next_serial_) return 0;
  const uint32_t first = next_serial_;
  next_serial_ += static_cast<uint32_t>(blocks);
  return first;
}

void Memory::Free(uint64_t address) {
  const std::unique_lock lock(mutex_);
  const auto at = allocations_.find(address);
  if (at == allocations_.end()) return;
  at->second.Unmap();
  used_ -= at->second.bytes;
  allocations_.erase(at);
}

void Memory::Retire(uint64_t address) {
  const std::unique_lock lock(mutex_);
  auto node = allocations_.extract(address);
  if (node.empty()) return;
  Allocation& allocation = node.mapped();
  used_ -= allocation.bytes;
  // Its pages are zero again at the next access.
  ::madvise(reinterpret_cast<void*>(address), allocation.mapped - 2 * kRedZone, MADV_DONTNEED);
  if (allocation.shadow) {
    ::madvise(allocation.shadow_mapping, allocation.shadow_mapped, MADV_DONTNEED);
    allocation.shadow->complete = !tracks_defined_;
  }
  retired_bytes_ += allocation.mapped;
  retired_.emplace(allocation.mapped, std::pair(address, std::move(allocation)));
  ++generation_;
}

Result<uint64_t> Memory::AllocateAgain(uint64_t bytes) {
  {
    const std::unique_lock lock(mutex_);
    const auto at = retired_.find(MappedBytes(bytes));
    if (at != retired_.end() && retired_bytes_ > kQuarantine) {
      auto [address, allocation] = std::move(at->second);
      retired_bytes_ -= at->first;
      retired_.erase(at);
      allocation.bytes = bytes;
      used_ += bytes;
      allocations_[address] = std::move(allocation);
      return address;
    }
    if (retired_bytes_ > kMostRetired)
      return Fail(ErrorCode::kUnavailable, "the heap is in pieces");
  }
  return Allocate(bytes);
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
  const Range range{after->first, after->first + after->second.bytes, after->second.shadow.get()};
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
      return std::to_string(address - base) + " bytes into " + allocation.Text();
    nearest = std::to_string(best) + " bytes after the end of " + allocation.Text();
  }
  if (after != allocations_.end() && after->first - address < best) {
    nearest = std::to_string(after->first - address) + " bytes before " + after->second.Text();
  }
  return nearest;
}

DeviceHeap::~DeviceHeap() {
  for (const auto& [address, block] : live_) memory_.Free(address);
}

uint64_t DeviceHeap::Take(Block block) {
  const std::lock_guard lock(mutex_);
  if (block.bytes == 0 || block.bytes > limit_ - used_) return 0;
  const auto address = memory_.AllocateAgain(block.bytes);
  if (!address) return 0;
  used_ += block.bytes;
  live_[*address] = std::move(block);
  return *address;
}

std::map<uint64_t, DeviceHeap::Block> DeviceHeap::Live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

bool DeviceHeap::Give(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto at = live_.find(address);
  if (at == live_.end()) return false;
  used_ -= at->second.bytes;
  live_.erase(at);
  memory_.Retire(address);
  return true;
}

}  // namespace atunner::vgpu
