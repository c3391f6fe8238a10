// Global memory of the virtual GPU. A device address is the host address of the byte; every access
// is checked against the table of allocations. Pages are reserved lazily, so a large tensor that is
// barely touched costs little.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/texture.h"
#include "atunner/vgpu/memory/global_shadow.h"

namespace atunner::vgpu {

struct Range {
  uint64_t base = 0;
  uint64_t end = 0;                      ///< one past the last byte
  const GlobalShadow* shadow = nullptr;  ///< Memory::Track
  bool Contains(uint64_t low, uint64_t high) const { return low >= base && high <= end; }
};

/// Texels are stored row by row, layer by layer. Kernels may write them through the surface.
struct TextureData {
  TextureSpec spec;
  std::vector<std::byte> texels;
};
/// Handles of textures are even; that of a texture's surface is one more.
constexpr uint64_t kSurfaceBit = 1;

class Memory {
 public:
  explicit Memory(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The begin of a page; zero pages at first. kUnavailable beyond the capacity.
  Result<uint64_t> Allocate(uint64_t bytes);
  /// The same, 256-byte aligned: the next allocation of as many bytes has another place in its
  /// page, unless it is of 4 MiB or more. So no kernel can rely on equal low bits of addresses.
  Result<uint64_t> AllocateSkewed(uint64_t bytes);
  void Free(uint64_t address);
  /// Repeats `tile` over an allocation from its begin on, by mapping the same pages again and
  /// again: a page costs memory only after a write to it. False, with undefined
  /// contents, unless `address` is the begin of a large allocation of Allocate and the tile
  /// consists of whole pages.
  bool MapTiled(uint64_t address, uint64_t bytes, std::span<const std::byte> tile);
  /// Lets kernels use host memory until it is freed; Free does not release it. Returns the begin of
  /// the adopted range, which is extended to multiples of 256 bytes; nullopt if some of it is known
  /// already.
  std::optional<uint64_t> Adopt(uint64_t address, uint64_t bytes);
  /// The same as Free, while kernels run. The address space stays reserved, so that later accesses
  /// are reported and do no harm to the host.
  void Retire(uint64_t address);
  /// The same as Allocate, in retired address space if any fits. kUnavailable also when too much of
  /// it is retired.
  Result<uint64_t> AllocateAgain(uint64_t bytes);
  /// Grows when an allocation is retired: earlier results of Find may be invalid.
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }
  uint64_t free_bytes() const;
  /// The allocation that holds `address`.
  std::optional<Range> Find(uint64_t address) const;
  /// The position of an address, for reports: "12 bytes after the end of 'x', an allocation of 4096
  /// bytes".
  std::string Describe(uint64_t address) const;
  /// Sets the name of the allocation at `address` in reports.
  void SetName(uint64_t address, const std::string& name);

  /// New allocations get shadows, and their contents count as undefined until they are written.
  void Track() { tracks_ = tracks_defined_ = true; }
  /// The same for race checks only: everything counts as written.
  void TrackRaces() { tracks_ = true; }
  bool tracks() const { return tracks_; }
  bool tracks_defined() const { return tracks_defined_; }
  /// Marks bytes as written by the host, or as undefined.
  void MarkDefined(uint64_t address, uint64_t bytes, bool defined = true);
  /// True if definedness is tracked and none of these bytes of one allocation was written.
  bool IsUndefined(uint64_t address, uint64_t bytes) const;
  /// The begin of the first allocation and the end of the last one; equal if there is none.
  std::pair<uint64_t, uint64_t> Bounds() const;
  /// Reserves a serial for each of `blocks` blocks, and returns the first. 0 when there are none
  /// left.
  uint32_t TakeSerials(uint64_t blocks);
  ShadowLocks& locks() const { return locks_; }

  /// Returns the handle of the texture.
  uint64_t AddTexture(TextureData texture);
  void RemoveTexture(uint64_t handle);
  /// The texture with this handle, or with this handle of its surface; nullptr if there is none.
  TextureData* FindTexture(uint64_t handle) const;

 private:
  struct Allocation {
    uint64_t bytes = 0;
    void* mapping = nullptr;
    uint64_t mapped = 0;
    void* shadow_mapping = nullptr;
    uint64_t shadow_mapped = 0;
    std::unique_ptr<GlobalShadow> shadow;
    std::string name;
    std::string Text() const;
    void Unmap() const;
  };
  void AddShadow(Allocation& allocation, uint64_t address, uint64_t payload) const;
  /// `skew` bytes behind the begin of a page. The caller holds the lock.
  Result<uint64_t> AllocateAt(uint64_t bytes, uint64_t skew);
  mutable std::shared_mutex mutex_;
  mutable ShadowLocks locks_;
  std::map<uint64_t, Allocation> allocations_;
  /// Retired allocations and their addresses, by the lengths of their mappings
  std::multimap<uint64_t, std::pair<uint64_t, Allocation>> retired_;
  uint64_t retired_bytes_ = 0;
  std::map<uint64_t, uint64_t> skewed_;  ///< calls of AllocateSkewed by the number of bytes
  std::atomic<uint32_t> generation_{1};
  std::map<uint64_t, std::unique_ptr<TextureData>> textures_;
  uint64_t next_texture_ = uint64_t{1} << 32;
  bool tracks_ = false;
  bool tracks_defined_ = false;
  uint32_t next_serial_ = 1;
  uint64_t capacity_;
  uint64_t used_ = 0;
};

/// The heap of malloc in kernels. It is freed with the program.
class DeviceHeap {
 public:
  DeviceHeap(Memory& memory, uint64_t limit_bytes) : memory_(memory), limit_(limit_bytes) {}
  ~DeviceHeap();
  /// An allocation that was not freed yet.
  struct Block {
    uint64_t bytes = 0;
    uint32_t op = 0;  ///< the operation of kernel `entry` that allocated it
    std::string entry;
    uint64_t block = 0;
    uint32_t thread = 0;
  };
  /// 0 when the heap is full, as on hardware.
  uint64_t Take(Block block);
  /// False when `address` is not an allocation of the heap.
  bool Give(uint64_t address);
  std::map<uint64_t, Block> Live() const;

 private:
  Memory& memory_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Block> live_;
  uint64_t limit_;
  uint64_t used_ = 0;
};

}  // namespace atunner::vgpu
