// Physical memory of one GPU in pages of 2 MiB, and what is known of its use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "faces/memory/driver.h"

namespace atunner::memory {

/// The granularity in which CUDA's driver maps the memory of every GPU since Pascal.
inline constexpr size_t kPage = size_t{2} << 20;

/// Bytes are of one GPU, in the process.
struct Stats {
  int64_t live = 0;  ///< in tensors, in multiples of 512 bytes
  int64_t peak_live = 0;
  int64_t reserved = 0;  ///< physical memory
  int64_t peak_reserved = 0;
  int64_t allocations = 0;
  int64_t moved_pages = 0;       ///< pages that got another address
  int64_t moves = 0;             ///< allocations for which that happened
  int64_t synchronizations = 0;  ///< waits for the whole GPU
};

/// Makes the GPU's primary context current, and restores the one before.
class ContextGuard {
 public:
  ContextGuard(const Driver& driver, CudaContext context) : driver_(driver) {
    (void)driver_.push_context(context);
  }
  ~ContextGuard() {
    CudaContext before = nullptr;
    (void)driver_.pop_context(&before);
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  const Driver& driver_;
};

class PagePool {
 public:
  PagePool(const Driver& driver, int device) : driver_(driver), device_(device) {}

  /// Appends up to `count` new pages; fewer if the GPU has no more.
  void Create(size_t count, std::vector<PageHandle>& pages);
  /// Gives pages back to the GPU. Their mappings must be gone.
  void Release(const std::vector<PageHandle>& pages);
  /// Maps pages one behind the other. False if the driver refuses.
  bool Map(Address at, const std::vector<PageHandle>& pages);
  bool Unmap(Address at, size_t bytes) { return driver_.unmap(at, bytes) == 0; }
  bool Synchronize();

  /// Bytes that may be reserved for what is live: a little more than the peak. Each move of pages
  /// allows more, so that a program that repeats its steps soon needs no further moves.
  int64_t Allowed() const;
  void AddLive(int64_t bytes);

  Stats& stats() { return stats_; }
  const Stats& stats() const { return stats_; }
  const Driver& driver() const { return driver_; }

 private:
  const Driver& driver_;
  int device_;
  Stats stats_;
};

}  // namespace atunner::memory
