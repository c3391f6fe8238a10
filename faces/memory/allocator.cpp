// libatunner_memory.so: an allocator for PyTorch (torch.cuda.memory.CUDAPluggableAllocator).
//
//     allocator = torch.cuda.memory.CUDAPluggableAllocator(
//         "libatunner_memory.so", "atunner_alloc", "atunner_free")
//     torch.cuda.memory.change_current_allocator(allocator)
#include <sys/types.h>

#include <array>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "faces/memory/arena.h"

namespace atunner::memory {
namespace {

constexpr int kMostDevices = 64;

/// Never destroyed: tensors may be freed when the process ends, after static objects.
struct Arenas {
  std::mutex mutex;
  std::array<Arena*, kMostDevices> of{};
  bool tracing = false;
};

Arenas& All() {
  static auto* const arenas = new Arenas;
  return *arenas;
}

Arena* Opened(int device, std::string& reason) {
  if (device < 0 || device >= kMostDevices) {
    reason = "there is no such GPU";
    return nullptr;
  }
  Arenas& all = All();
  const std::scoped_lock lock(all.mutex);
  Arena*& arena = all.of[static_cast<size_t>(device)];
  if (arena != nullptr) return arena;
  const Driver* const driver = LoadedDriver();
  if (driver == nullptr) {
    reason = "libcuda.so.1 is missing, or has no virtual memory";
    return nullptr;
  }
  arena = Arena::Open(*driver, device, reason).release();
  if (arena != nullptr && all.tracing) arena->BeginTrace();
  return arena;
}

/// The arena of a GPU that has one.
Arena* Existing(int device) {
  Arenas& all = All();
  const std::scoped_lock lock(all.mutex);
  return device < 0 || device >= kMostDevices ? nullptr : all.of[static_cast<size_t>(device)];
}

}  // namespace
}  // namespace atunner::memory

using atunner::memory::Arena;

extern "C" {

/// PyTorch does not look at the address that an allocator returns, but it translates exceptions:
/// so this throws std::runtime_error where there is no memory.
__attribute__((visibility("default"))) void* atunner_alloc(ssize_t bytes, int device,
                                                           void* stream) {
  if (bytes <= 0) return nullptr;
  std::string reason = "out of memory";
  Arena* const arena = atunner::memory::Opened(device, reason);
  void* const at = arena == nullptr ? nullptr : arena->Allocate(static_cast<size_t>(bytes), stream);
  if (at != nullptr) return at;
  const auto stats = arena == nullptr ? atunner::memory::Stats() : arena->stats();
  throw std::runtime_error("atunner: GPU " + std::to_string(device) + ": " + reason + ": " +
                           std::to_string(bytes) + " bytes were asked for, " +
                           std::to_string(stats.live) + " are in use, " +
                           std::to_string(stats.reserved) + " reserved");
}

__attribute__((visibility("default"))) void atunner_free(void* at, ssize_t /*bytes*/, int device,
                                                         void* /*stream*/) {
  Arena* const arena = atunner::memory::Existing(device);
  if (at == nullptr || (arena != nullptr && arena->Free(at))) return;
  std::fprintf(stderr, "atunner: %p was freed on GPU %d and not allocated there\n", at, device);
}

/// For CUDAPluggableAllocator's set_record_stream_fn.
__attribute__((visibility("default"))) void atunner_record_stream(void* at, void* stream) {
  for (int device = 0; device < atunner::memory::kMostDevices; ++device)
    if (Arena* const arena = atunner::memory::Existing(device);
        arena != nullptr && arena->Use(at, stream))
      return;
}

/// live, peak live, reserved, peak reserved, allocations, moved pages, moves, waits for the GPU.
__attribute__((visibility("default"))) void atunner_memory_stats(int device, int64_t* eight) {
  const Arena* const arena = atunner::memory::Existing(device);
  const auto stats = arena == nullptr ? atunner::memory::Stats() : arena->stats();
  const std::array<int64_t, 8> values = {
      stats.live,        stats.peak_live,   stats.reserved, stats.peak_reserved,
      stats.allocations, stats.moved_pages, stats.moves,    stats.synchronizations};
  for (size_t i = 0; i < values.size(); ++i) eight[i] = values[i];
}

__attribute__((visibility("default"))) void atunner_memory_reset_peaks(int device) {
  if (Arena* const arena = atunner::memory::Existing(device)) arena->ResetPeaks();
}

__attribute__((visibility("default"))) void atunner_memory_empty(int device) {
  if (Arena* const arena = atunner::memory::Existing(device)) arena->Empty();
}

/// Allocations of GPUs that are used from now on are recorded.
__attribute__((visibility("default"))) void atunner_memory_begin_trace() {
  atunner::memory::All().tracing = true;
}

/// Writes what was recorded, for `atunner memory plan`. 0 if it is written.
__attribute__((visibility("default"))) int atunner_memory_write_trace(int device,
                                                                      const char* file) {
  const Arena* const arena = atunner::memory::Existing(device);
  std::FILE* const out = arena == nullptr ? nullptr : std::fopen(file, "w");
  if (out == nullptr) return 1;
  const std::string text = arena->TraceText();
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fclose(out) == 0 && written ? 0 : 1;
}

}  // extern "C"
