// Global memory of the virtual GPU. A device address is the host address of the byte; every access is checked against
// the table of allocations. Pages are reserved lazily, so a large tensor that is barely touched costs little.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "atunner/base/result.h"

namespace atunner::vgpu {

struct Range {
  uint64_t base = 0;
  uint64_t end = 0;  ///< one past the last byte
  bool Contains(uint64_t low, uint64_t high) const { return low >= base && high <= end; }
};

class Memory {
 public:
  explicit Memory(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// 256-byte aligned, zero pages at first. kUnavailable beyond the capacity.
  Result<uint64_t> Allocate(uint64_t bytes);
  void Free(uint64_t address);
  uint64_t free_bytes() const;
  /// The allocation that holds `address`.
  std::optional<Range> Find(uint64_t address) const;
  /// Where an address lies, for reports: "12 bytes after the end of an allocation of 4096 bytes".
  std::string Describe(uint64_t address) const;

 private:
  struct Allocation {
    uint64_t bytes = 0;
    void* mapping = nullptr;
    uint64_t mapped = 0;
  };
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
  uint64_t capacity_;
  uint64_t used_ = 0;
};

/// What kernels allocate with malloc; freed with the program.
class DeviceHeap {
 public:
  DeviceHeap(Memory& memory, uint64_t limit_bytes) : memory_(memory), limit_(limit_bytes) {}
  ~DeviceHeap();
  /// 0 when the heap is full, as on hardware.
  uint64_t Take(uint64_t bytes);
  /// False when `address` is none of the heap's.
  bool Give(uint64_t address);

 private:
  Memory& memory_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> live_;
  uint64_t limit_;
  uint64_t used_ = 0;
};

}  // namespace atunner::vgpu
