// CUDA's libraries (cuBLAS, cuRAND, cuFFT) over the virtual GPU: their functions compute on the
// host, since memory of the virtual GPU is memory of the host. They give programs the data that
// their own kernels go on with; their time is not predicted.
#pragma once

#include <cstdint>
#include <utility>

#include "faces/program/runtime_state.h"

namespace atunner::program {

/// What a library's handle points to. Functions of the library that are not answered here get it
/// too, and find zeros.
struct LibraryHandle {
  void* stream = nullptr;
  uint64_t seed = 0;
  uint64_t drawn = 0;              ///< numbers that were drawn
  int64_t extents[3] = {1, 1, 1};  ///< of a plan: z, y, x
  int64_t batch = 1;
  char zeros[4096] = {};
};

/// Notes that the host wrote device memory; host memory is left alone.
inline void NoteWritten(const void* at, uint64_t bytes) {
  vgpu::VirtualGpu& gpu = VirtualDevice::Get().gpu();
  const auto address = reinterpret_cast<uint64_t>(at);
  if (bytes > 0 && gpu.memory().Find(address)) gpu.MarkContents(address, bytes, true);
}

/// Runs `work`, which returns nothing, in the order of the handle's stream.
template <class F>
int InLibrary(LibraryHandle* handle, F work) {
  if (handle == nullptr) return 1;
  return DoIn(handle->stream, Node::kHost, [work = std::move(work)]() -> int {
    work();
    return kSuccess;
  });
}

}  // namespace atunner::program
