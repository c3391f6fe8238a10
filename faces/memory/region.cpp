#include "faces/memory/region.h"

#include <algorithm>
#include <iterator>

namespace atunner::memory {
namespace {

Address RoundUp(Address at) { return (at + kPage - 1) / kPage * kPage; }
Address RoundDown(Address at) { return at / kPage * kPage; }

/// Whole pages inside of [at, at + bytes).
size_t WholePages(Address at, size_t bytes) {
  const Address first = RoundUp(at), last = RoundDown(at + bytes);
  return last > first ? (last - first) / kPage : 0;
}

}  // namespace

Region::Region(PagePool& pool, Address begin, size_t bytes)
    : pool_(pool), begin_(begin), end_(begin + bytes), unmapped_{{begin, bytes}} {}

Address Region::Allocate(size_t bytes, Stream stream) {
  const auto& fitting = free_[stream];
  const auto best = fitting.lower_bound({bytes, 0});
  return best != fitting.end() ? Take(blocks_.find(best->second), bytes) : Grow(bytes, stream);
}

/// The first `bytes` of a free block; the rest stays free.
Address Region::Take(Blocks::iterator block, size_t bytes) {
  RemoveFree(block);
  const Address at = block->first;
  const size_t rest = block->second.bytes - bytes;
  const Stream stream = block->second.stream;
  block->second = {.bytes = bytes, .stream = stream};
  if (rest > 0) AddFree(at + bytes, rest, stream);
  return at;
}

/// A new block at the begin of the largest range of free addresses.
Address Region::Grow(size_t bytes, Stream stream) {
  const auto larger = [](const auto& a, const auto& b) { return a.second < b.second; };
  auto range = std::max_element(unmapped_.begin(), unmapped_.end(), larger);
  if (range == unmapped_.end() || range->second < bytes + kPage) {
    if (!pool_.Synchronize()) return 0;
    DropStale();
    range = std::max_element(unmapped_.begin(), unmapped_.end(), larger);
    if (range == unmapped_.end() || range->second < bytes + kPage) return 0;
  }
  // A free block that ends where the range begins is the first part of the new block.
  const Address start = range->first;
  auto before = blocks_.lower_bound(start);
  before = before == blocks_.begin() ? blocks_.end() : std::prev(before);
  const bool joins = before != blocks_.end() && before->first + before->second.bytes == start &&
                     before->second.kind == Block::kFree && before->second.stream == stream;
  const size_t own = joins ? before->second.bytes : 0;
  if (joins) RemoveFree(before);
  const size_t pages = (bytes - own + kPage - 1) / kPage;
  std::vector<PageHandle> found;
  Collect(pages, stream, found);
  if (found.size() < pages || !pool_.Map(start, found)) {
    pool_.Release(found);
    if (joins) free_[stream].emplace(own, before->first);
    return 0;
  }
  for (size_t i = 0; i < pages; ++i) pages_[start + i * kPage] = found[i];
  const size_t length = range->second - pages * kPage;
  unmapped_.erase(range);
  if (length > 0) unmapped_[start + pages * kPage] = length;
  const Address at = joins ? before->first : start;
  if (joins) blocks_.erase(before);
  AddFree(at, own + pages * kPage, stream);
  return Take(blocks_.find(at), bytes);
}

/// New pages while the pool allows them, then those of free blocks of the stream, then new ones.
void Region::Collect(size_t pages, Stream stream, std::vector<PageHandle>& found) {
  const int64_t allowed = (pool_.Allowed() - pool_.stats().reserved) / static_cast<int64_t>(kPage);
  const auto room = static_cast<size_t>(std::max<int64_t>(0, allowed));
  if (room >= pages) pool_.Create(pages, found);
  // Pages of free blocks, the largest first.
  const size_t before = found.size();
  auto& sizes = free_[stream];
  for (auto at = sizes.end(); found.size() < pages && at != sizes.begin();) {
    const auto [bytes, address] = *--at;
    if (bytes < kPage) break;
    if (WholePages(address, bytes) == 0) continue;
    Strip(blocks_.find(address), pages - found.size(), found);
    at = sizes.end();  // the rests of the block were added
  }
  pool_.stats().moved_pages += static_cast<int64_t>(found.size() - before);
  if (found.size() > before) ++pool_.stats().moves;
  if (found.size() < pages) pool_.Create(pages - found.size(), found);
}

/// Takes up to `pages` whole pages of a free block; their addresses become stale.
void Region::Strip(Blocks::iterator block, size_t pages, std::vector<PageHandle>& found) {
  const auto [at, held] = *block;
  const Address first = RoundUp(at);
  const size_t count = std::min(pages, WholePages(at, held.bytes));
  const Address last = first + count * kPage, end = at + held.bytes;
  RemoveFree(block);
  blocks_.erase(block);
  if (first > at) AddFree(at, first - at, held.stream);
  if (end > last) AddFree(last, end - last, held.stream);
  blocks_[first] = {.bytes = count * kPage, .kind = Block::kStale};
  for (Address page = first; page < last; page += kPage) {
    found.push_back(pages_.at(page));
    pages_.erase(page);
  }
}

std::optional<FreedBlock> Region::Free(Address at) {
  auto block = blocks_.find(at);
  if (block == blocks_.end() || block->second.kind != Block::kUsed) return std::nullopt;
  FreedBlock freed{.bytes = block->second.bytes,
                   .stream = block->second.stream,
                   .others = std::move(block->second.others)};
  Address begin = at;
  size_t bytes = freed.bytes;
  const auto joins = [&](Blocks::iterator other) {
    return other->second.kind == Block::kFree && other->second.stream == freed.stream;
  };
  const auto next = std::next(block);
  if (next != blocks_.end() && next->first == at + bytes && joins(next)) {
    bytes += next->second.bytes;
    RemoveFree(next);
    blocks_.erase(next);
  }
  if (block != blocks_.begin()) {
    const auto before = std::prev(block);
    if (before->first + before->second.bytes == at && joins(before)) {
      begin = before->first;
      bytes += before->second.bytes;
      RemoveFree(before);
      blocks_.erase(before);
    }
  }
  blocks_.erase(block);
  AddFree(begin, bytes, freed.stream);
  return freed;
}

bool Region::Use(Address at, Stream stream) {
  const auto block = blocks_.find(at);
  if (block == blocks_.end() || block->second.kind != Block::kUsed) return false;
  auto& others = block->second.others;
  if (stream != block->second.stream && std::ranges::find(others, stream) == others.end())
    others.push_back(stream);
  return true;
}

void Region::AddFree(Address at, size_t bytes, Stream stream) {
  blocks_[at] = {.bytes = bytes, .stream = stream, .kind = Block::kFree};
  free_[stream].emplace(bytes, at);
}

void Region::RemoveFree(Blocks::iterator block) {
  free_[block->second.stream].erase({block->second.bytes, block->first});
}

void Region::DropStale() {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    if (block->second.kind != Block::kStale) {
      ++block;
      continue;
    }
    Address at = block->first;
    size_t bytes = block->second.bytes;
    block = blocks_.erase(block);
    if (!pool_.Unmap(at, bytes)) continue;  // its addresses are lost, and nothing else
    const auto next = unmapped_.lower_bound(at);
    if (next != unmapped_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
      }
    }
    if (next != unmapped_.end() && next->first == at + bytes) {
      bytes += next->second;
      unmapped_.erase(next);
    }
    unmapped_[at] = bytes;
  }
}

void Region::Trim() {
  std::vector<Address> free;
  for (const auto& [at, block] : blocks_)
    if (block.kind == Block::kFree && WholePages(at, block.bytes) > 0) free.push_back(at);
  std::vector<PageHandle> pages;
  for (const Address at : free) {
    const auto block = blocks_.find(at);
    Strip(block, WholePages(at, block->second.bytes), pages);
  }
  DropStale();
  pool_.Release(pages);
}

void Region::Adopt(Stream stream) {
  free_.clear();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (block->second.kind != Block::kFree) continue;
    block->second.stream = stream;
    auto next = std::next(block);
    while (next != blocks_.end() && next->second.kind == Block::kFree &&
           next->first == block->first + block->second.bytes) {
      block->second.bytes += next->second.bytes;
      next = blocks_.erase(next);
    }
    free_[stream].emplace(block->second.bytes, block->first);
  }
}

}  // namespace atunner::memory
