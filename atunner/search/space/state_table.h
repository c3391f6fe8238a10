// The distinct states of one level while a decision diagram is built.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "atunner/model/expr/expr_program.h"

namespace atunner {

/// A hash table of rows of `width` cells. Equal rows have the same number.
class StateTable {
 public:
  explicit StateTable(size_t width) : width_(width), slots_(1024, kNone) {}
  size_t count() const { return count_; }
  std::span<const Cell> Row(size_t i) const {
    return std::span(cells_).subspan(i * width_, width_);
  }

  /// The row's number; a new row is added.
  uint32_t IdOf(std::span<const Cell> row) {
    const uint64_t hash = HashOf(row);
    if (2 * (count_ + 1) > slots_.size()) Grow();
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != kNone; at = (at + 1) & (slots_.size() - 1)) {
      if (hashes_[slots_[at]] == hash && std::ranges::equal(Row(slots_[at]), row))
        return slots_[at];
    }
    slots_[at] = static_cast<uint32_t>(count_++);
    hashes_.push_back(hash);
    cells_.insert(cells_.end(), row.begin(), row.end());
    return slots_[at];
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  static uint64_t HashOf(std::span<const Cell> row) {
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (const Cell& cell : row) {
      hash = (hash ^ static_cast<uint64_t>(cell.integer)) * 0xff51afd7ed558ccdull +
             static_cast<uint64_t>(cell.kind);
      hash ^= hash >> 32;
    }
    return hash;
  }
  void Grow() {
    slots_.assign(slots_.size() * 4, kNone);
    for (size_t i = 0; i < count_; ++i) {
      size_t at = hashes_[i] & (slots_.size() - 1);
      while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<uint32_t>(i);
    }
  }

  size_t width_;
  size_t count_ = 0;
  std::vector<Cell> cells_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> slots_;
};

}  // namespace atunner
