// Blocks in one range of virtual addresses, and the physical pages behind them.
//
// A block is served from the smallest free block of its stream that is large enough; freed
// neighbours are joined. If none is large enough, the region grows at its end. The pages for that
// are new ones while little more is reserved than is live; after that they are whole pages of free
// blocks, however scattered: they are mapped a second time, at the end. So free memory between live
// blocks does not stay unused.
//
// The old mapping of such a page stays: kernels that were launched before may still use it, and
// kernels of the same stream that use the new one run later. Nothing waits. The addresses of the
// old mapping are stale: nobody gets them until the region has none left; then it waits for the GPU
// once and removes all stale mappings.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "faces/memory/page_pool.h"

namespace atunner::memory {

/// What a free told: the bytes of its block, and the streams that used it besides its own.
struct FreedBlock {
  size_t bytes = 0;
  Stream stream = nullptr;
  std::vector<Stream> others;
};

class Region {
 public:
  /// [begin, begin + bytes) are reserved addresses, in whole pages.
  Region(PagePool& pool, Address begin, size_t bytes);

  /// The address of a new block; 0 if there is no memory. `bytes` is a multiple of 512.
  Address Allocate(size_t bytes, Stream stream);
  /// nullopt if no block begins there.
  std::optional<FreedBlock> Free(Address at);
  /// A further stream uses the block: it is recorded until the block is freed.
  bool Use(Address at, Stream stream);
  bool Contains(Address at) const { return at >= begin_ && at < end_; }

  /// After a wait for the GPU: removes stale mappings, and gives whole pages of free blocks back.
  void Trim();
  /// After a wait for the GPU: all free blocks belong to `stream`.
  void Adopt(Stream stream);

 private:
  struct Block {
    enum Kind : uint8_t { kUsed, kFree, kStale };
    size_t bytes = 0;
    Stream stream = nullptr;
    Kind kind = kUsed;
    std::vector<Stream> others;
  };
  using Blocks = std::map<Address, Block>;

  Address Take(Blocks::iterator block, size_t bytes);
  Address Grow(size_t bytes, Stream stream);
  void Collect(size_t pages, Stream stream, std::vector<PageHandle>& found);
  void Strip(Blocks::iterator block, size_t pages, std::vector<PageHandle>& found);
  void AddFree(Address at, size_t bytes, Stream stream);
  void RemoveFree(Blocks::iterator block);
  void DropStale();

  PagePool& pool_;
  const Address begin_, end_;
  Blocks blocks_;
  std::map<Stream, std::set<std::pair<size_t, Address>>> free_;  ///< by bytes
  std::map<Address, size_t> unmapped_;                           ///< free addresses, joined
  std::unordered_map<Address, PageHandle> pages_;                ///< by the address of the page
};

}  // namespace atunner::memory
