// Places buffers with known lifetimes into one block of memory, before anything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace atunner {

/// A buffer from the step that first writes it to the last step that uses it, both included.
struct BufferLifetime {
  uint64_t bytes = 0;
  size_t first = 0;
  size_t last = 0;
};

struct Placement {
  std::vector<uint64_t> offsets;  ///< of each buffer, from the block's beginning
  uint64_t bytes = 0;             ///< of the block
};

/// Offsets at multiples of `alignment` such that buffers that live at the same time do not overlap.
/// A step's results never take the memory of what it reads, because kernels are verified with
/// separate memory only. Largest buffers come first, each at the lowest offset that is free
/// during its lifetime ("greedy by size": Pisarchyk and Lee, Efficient Memory Management for Deep
/// Neural Net Inference, 2020). Quadratic in the number of buffers.
Placement PlaceBuffers(std::span<const BufferLifetime> buffers, uint64_t alignment);

/// The most bytes that live at the same time, each rounded up to `alignment`: no placement needs
/// less.
uint64_t LeastBytes(std::span<const BufferLifetime> buffers, uint64_t alignment);

}  // namespace atunner
