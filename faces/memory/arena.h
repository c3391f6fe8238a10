// All memory that is served on one GPU. Safe for threads.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faces/memory/page_pool.h"
#include "faces/memory/region.h"

namespace atunner::memory {

/// What was allocated and freed, in order. For `atunner memory plan`.
struct TraceEntry {
  int64_t begin = 0, end = -1;  ///< numbers of events; -1: not freed
  size_t bytes = 0;
};

class Arena {
 public:
  /// nullptr without a driver, a context or addresses; `reason` says which.
  static std::unique_ptr<Arena> Open(const Driver& driver, int device, std::string& reason);

  /// nullptr if there is no memory; the whole GPU was waited for then.
  void* Allocate(size_t bytes, Stream stream);
  /// False if nothing was allocated there. Work of other streams that `Use` named runs before the
  /// block is used again.
  bool Free(void* at);
  bool Use(void* at, Stream stream);
  /// Waits for the GPU and gives it what is free.
  void Empty();

  Stats stats() const;
  void ResetPeaks();
  /// From now on allocations are recorded.
  void BeginTrace();
  /// As a table: id,lower,upper,size.
  std::string TraceText() const;

 private:
  Arena(const Driver& driver, int device, CudaContext context, Address begin, size_t bytes);
  Region& RegionOf(size_t bytes) { return bytes < kSmall ? small_ : large_; }
  void Record(void* at, size_t bytes);

  /// Smaller blocks have a region of their own: long-lived ones would divide the free memory of
  /// large ones.
  static constexpr size_t kSmall = size_t{1} << 20;

  mutable std::mutex mutex_;
  const CudaContext context_;
  PagePool pool_;
  Region small_, large_;
  bool tracing_ = false;
  int64_t events_ = 0;
  std::vector<TraceEntry> trace_;
  std::unordered_map<Address, size_t> open_;  ///< places in trace_ of live blocks
};

}  // namespace atunner::memory
