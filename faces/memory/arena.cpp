#include "faces/memory/arena.h"

#include <algorithm>
#include <utility>

namespace atunner::memory {
namespace {

constexpr size_t kAlignment = 512;  ///< of PyTorch's own allocator

/// Addresses cost nothing; with many times the GPU's memory stale ones are rarely removed.
constexpr size_t kAddressesPerByte = 32;

size_t Rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

Address AddressOf(void* at) { return reinterpret_cast<Address>(at); }

}  // namespace

std::unique_ptr<Arena> Arena::Open(const Driver& driver, int device, std::string& reason) {
  CudaContext context = nullptr;
  if (driver.init(0) != 0 || driver.retain_context(&context, device) != 0) {
    reason = "the GPU's context cannot be made";
    return nullptr;
  }
  const ContextGuard guard(driver, context);
  size_t free = 0, total = 0;
  if (driver.memory_info(&free, &total) != 0) {
    reason = "the GPU does not say how much memory it has";
    return nullptr;
  }
  for (size_t times = kAddressesPerByte; times >= 4; times /= 2) {
    const size_t bytes = (total / kPage + 1) * kPage * times;
    Address begin = 0;
    if (driver.reserve(&begin, bytes, kPage, 0, 0) == 0)
      return std::unique_ptr<Arena>(new Arena(driver, device, context, begin, bytes));
  }
  reason = "the driver reserves no addresses (cuMemAddressReserve)";
  return nullptr;
}

Arena::Arena(const Driver& driver, int device, CudaContext context, Address begin, size_t bytes)
    : context_(context),
      pool_(driver, device),
      small_(pool_, begin, bytes / 4 / kPage * kPage),
      large_(pool_, begin + bytes / 4 / kPage * kPage, bytes - bytes / 4 / kPage * kPage) {}

void* Arena::Allocate(size_t bytes, Stream stream) {
  const size_t rounded = Rounded(std::max<size_t>(1, bytes));
  const std::scoped_lock lock(mutex_);
  const ContextGuard guard(pool_.driver(), context_);
  pool_.AddLive(static_cast<int64_t>(rounded));
  Region& region = RegionOf(rounded);
  Address at = region.Allocate(rounded, stream);
  if (at == 0 && pool_.Synchronize()) {
    // All free memory is idle now: that of other streams and of the other region serves, too.
    (&region == &small_ ? large_ : small_).Trim();
    region.Adopt(stream);
    at = region.Allocate(rounded, stream);
  }
  if (at == 0) {
    pool_.AddLive(-static_cast<int64_t>(rounded));
    return nullptr;
  }
  ++pool_.stats().allocations;
  void* const result = reinterpret_cast<void*>(at);
  Record(result, rounded);
  return result;
}

bool Arena::Free(void* at) {
  const std::scoped_lock lock(mutex_);
  Region& region = small_.Contains(AddressOf(at)) ? small_ : large_;
  const auto freed = region.Free(AddressOf(at));
  if (!freed) return false;
  pool_.AddLive(-static_cast<int64_t>(freed->bytes));
  const Driver& driver = pool_.driver();
  if (!freed->others.empty()) {
    const ContextGuard guard(driver, context_);
    for (const Stream other : freed->others) {
      Event event = nullptr;
      constexpr unsigned kNoTiming = 2;
      if (driver.create_event(&event, kNoTiming) != 0) continue;
      (void)driver.record(event, other);
      (void)driver.wait(freed->stream, event, 0);
      (void)driver.destroy_event(event);  // once it has happened
    }
  }
  if (const auto open = open_.find(AddressOf(at)); open != open_.end()) {
    trace_[open->second].end = events_++;
    open_.erase(open);
  }
  return true;
}

bool Arena::Use(void* at, Stream stream) {
  const std::scoped_lock lock(mutex_);
  Region& region = small_.Contains(AddressOf(at)) ? small_ : large_;
  return region.Use(AddressOf(at), stream);
}

void Arena::Empty() {
  const std::scoped_lock lock(mutex_);
  const ContextGuard guard(pool_.driver(), context_);
  if (!pool_.Synchronize()) return;
  small_.Trim();
  large_.Trim();
}

Stats Arena::stats() const {
  const std::scoped_lock lock(mutex_);
  return pool_.stats();
}

void Arena::ResetPeaks() {
  const std::scoped_lock lock(mutex_);
  Stats& stats = pool_.stats();
  stats.peak_live = stats.live;
  stats.peak_reserved = stats.reserved;
}

void Arena::BeginTrace() {
  const std::scoped_lock lock(mutex_);
  tracing_ = true;
}

void Arena::Record(void* at, size_t bytes) {
  if (!tracing_) return;
  open_[AddressOf(at)] = trace_.size();
  trace_.push_back({.begin = events_++, .bytes = bytes});
}

std::string Arena::TraceText() const {
  const std::scoped_lock lock(mutex_);
  std::string text = "id,lower,upper,size\n";
  for (size_t i = 0; i < trace_.size(); ++i) {
    const TraceEntry& entry = trace_[i];
    text += std::to_string(i) + ',' + std::to_string(entry.begin) + ',' +
            std::to_string(entry.end < 0 ? events_ : entry.end) + ',' +
            std::to_string(entry.bytes) + '\n';
  }
  return text;
}

}  // namespace atunner::memory
