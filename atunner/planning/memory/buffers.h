// Buffers with known lifetimes, to be placed in one block of memory (offline allocation).
//
// Example: a is alive at times 0 and 1, b at 1 and 2, c at 2 only. a and c may share addresses.
//
//     id  begin  end  size        offset
//     a       0    2     4             0      bytes 4..6  ·  b  b
//     b       1    3     2             4      bytes 0..4  a  a  c
//     c       2    3     4             0      time        0  1  2
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::planning {

/// Alive from `begin` up to, but not at, `end`. Times are only compared.
struct Buffer {
  int64_t begin = 0, end = 0;
  int64_t size = 0;  ///< bytes
  bool operator==(const Buffer&) const = default;
  bool Overlaps(const Buffer& other) const { return begin < other.end && other.begin < end; }
};

/// What an allocator did with the same buffers; 0 = unknown.
struct Observed {
  int64_t peak_reserved = 0;     ///< bytes that it held at the most
  int64_t live_at_reserved = 0;  ///< bytes in use at that moment
  std::string allocator;         ///< "PyTorch's caching allocator"
};

struct MemoryProblem {
  std::vector<Buffer> buffers;
  std::vector<std::string> ids;  ///< of buffers
  Observed observed;
  std::vector<std::string> notes;  ///< what was left out or assumed
};

/// Largest sum of sizes at any time: no placement needs less.
int64_t LowerBound(const std::vector<Buffer>& buffers);

/// kInvalidInput, naming the buffer, if a size is negative, a lifetime is empty, or the sizes add
/// up to more than 2^60 bytes.
Status CheckBuffers(const MemoryProblem& problem);

/// An address for each buffer.
struct Placement {
  std::vector<int64_t> offsets;  ///< bytes; empty = none
  int64_t peak = 0;              ///< largest offset + size
};

int64_t PeakOf(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets);

/// True if no two buffers that are alive together share an address.
bool IsValid(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets);

}  // namespace atunner::planning
