// Accesses of a block that the counters remember: sectors of global memory, and patterns of shared
// addresses.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace atunner::vgpu {

/// Sectors of 32 bytes that a block touched, four to a line, with how far apart their touches were.
class SectorTable {
 public:
  static constexpr uint32_t kShortly = 32;  ///< sectors in between, that do not count as a distance
  uint64_t size() const { return sectors_; }
  /// `others` further sectors take space in the cache.
  void Pass(uint64_t others) { clock_ += static_cast<uint32_t>(others); }
  void Clear() {
    if (lines_ != 0) entries_.assign(entries_.size(), Line{});
    sectors_ = lines_ = 0;
    clock_ = 0;
  }
  /// Calls f(line, its sectors: a bit each).
  template <class F>
  void ForLines(F&& f) const {
    for (const Line& line : entries_) {
      if (line.known != 0) f(line.number, line.known);
    }
  }
  uint32_t SectorsOf(uint64_t line) const {
    return entries_.empty() ? 0 : entries_[LocationOf(line)].known;
  }
  /// How many of the sectors of one access were accessed before.
  struct Met {
    uint64_t fresh = 0;  ///< sectors accessed for the first time
    /// Reuse distance of the other sectors: sectors accessed since their last access, summed
    uint64_t distance = 0;
    uint64_t lost = 0;  ///< other sectors whose reuse distance exceeds the cache
  };
  /// Accesses sector(0) … sector(n - 1). Distances are approximate: sectors accessed shortly before
  /// do not count, so that sectors that are read repeatedly count once.
  template <class F>
  Met Touch(size_t n, uint64_t kept, F&& sector) {
    Met met;
    uint32_t clock = clock_;
    for (size_t i = 0; i < n;) {
      const uint64_t number = sector(i) / 4;
      Line& line = Find(number);
      uint32_t known = line.known;
      for (; i < n && sector(i) / 4 == number; ++i) {
        const uint32_t part = sector(i) % 4;
        const bool fresh = ((known >> part) & 1u) == 0;
        const uint32_t age = clock - line.touched[part];
        if (fresh || age > kShortly) ++clock;
        line.touched[part] = clock;
        known |= 1u << part;
        met.fresh += fresh ? 1 : 0;
        met.distance += fresh ? 0 : age;
        met.lost += !fresh && age > kept ? 1 : 0;
      }
      line.known = known;
    }
    clock_ = clock;
    sectors_ += met.fresh;
    return met;
  }

 private:
  struct Line {
    uint64_t number = ~uint64_t{0};
    uint32_t known = 0;
    std::array<uint32_t, 4> touched{};
  };
  Line& Find(uint64_t number) {
    if (2 * (lines_ + 1) > entries_.size()) Grow();
    Line& line = LineOf(number);
    if (line.number != number) {
      line.number = number;
      ++lines_;
    }
    return line;
  }
  Line& LineOf(uint64_t number) { return entries_[LocationOf(number)]; }
  uint64_t LocationOf(uint64_t number) const {
    const uint64_t mask = entries_.size() - 1;
    uint64_t at = (number * 0x9e3779b97f4a7c15ull >> 32) & mask;
    while (entries_[at].number != number && entries_[at].known != 0) at = (at + 1) & mask;
    return at;
  }
  void Grow() {
    std::vector<Line> old(std::max<size_t>(64, 2 * entries_.size()));
    old.swap(entries_);
    for (const Line& line : old) {
      if (line.known != 0) LineOf(line.number) = line;
    }
  }
  std::vector<Line> entries_;  ///< a power of two
  uint64_t sectors_ = 0;
  uint64_t lines_ = 0;
  uint32_t clock_ = 0;
};

/// Sectors that each of several blocks touched.
class CommonSectors {
 public:
  void Meet(const SectorTable& block) {
    if (!met_)
      block.ForLines([&](uint64_t line, uint32_t sectors) { lines_.emplace(line, sectors); });
    Keep([&](uint64_t line) { return block.SectorsOf(line); });
  }
  void Meet(const CommonSectors& others) {
    if (!others.met_) return;
    if (!met_) lines_ = others.lines_;
    Keep([&](uint64_t line) {
      const auto at = others.lines_.find(line);
      return at == others.lines_.end() ? 0 : at->second;
    });
  }
  uint64_t size() const {
    uint64_t sectors = 0;
    for (const auto& [line, known] : lines_) sectors += static_cast<uint64_t>(std::popcount(known));
    return sectors;
  }

 private:
  template <class F>
  void Keep(F&& sectors_of) {
    met_ = true;
    for (auto& [line, known] : lines_) known &= sectors_of(line);
    std::erase_if(lines_, [](const auto& line) { return line.second == 0; });
  }
  bool met_ = false;
  std::unordered_map<uint64_t, uint32_t> lines_;  ///< a bit for each sector
};

/// Cached wavefronts of accesses by the differences of their lanes' addresses: an access that is
/// shifted as a whole has as many bank conflicts.
class PatternTable {
 public:
  struct Pattern {
    uint32_t bytes = 0;  ///< of a lane; 0 = nothing yet
    uint32_t mask = 0;
    std::array<uint32_t, 32> offset{};  ///< from the first active lane; 0 in those that are not
    uint32_t wavefronts = 0;
    bool Same(const Pattern& other) const {
      return bytes == other.bytes && mask == other.mask &&
             std::memcmp(offset.data(), other.offset.data(), sizeof offset) == 0;
    }
  };
  /// The table entry of a pattern.
  Pattern& Entry(const Pattern& pattern) {
    const uint64_t mix = (uint64_t{pattern.offset[1]} * 7 + uint64_t{pattern.offset[7]} * 5 +
                          uint64_t{pattern.offset[19]} * 3 + pattern.offset[31] + pattern.mask +
                          pattern.bytes) *
                         0x9e3779b97f4a7c15ull;
    return patterns_[mix >> 58];
  }

 private:
  std::array<Pattern, 64> patterns_{};
};

}  // namespace atunner::vgpu
