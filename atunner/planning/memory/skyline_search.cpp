#include "atunner/planning/memory/skyline_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "atunner/base/random.h"

namespace atunner::planning {
namespace {

constexpr int64_t kWall = std::numeric_limits<int64_t>::max();
constexpr size_t kMostSeen = size_t{1} << 22;

/// A buffer in sections of time: [first, last).
struct Block {
  uint32_t first = 0, last = 0;
  int64_t size = 0;
  uint32_t buffer = 0;
};

/// One way to go on at a valley.
struct Choice {
  bool waste = false;
  uint32_t block = 0;
  // For waste: the sections whose floor rises, and to where.
  uint32_t first = 0, last = 0;
  int64_t floor = 0;
};

struct Valley {
  uint32_t first = 0, last = 0;
  bool left = true;  ///< the side that is filled
};

class Skyline {
 public:
  Skyline(const std::vector<Buffer>& buffers, int64_t capacity)
      : capacity_(capacity), offsets_(buffers.size(), 0) {
    MakeBlocks(buffers);
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      begins_[blocks_[i].first].push_back(i);
      ends_[blocks_[i].last - 1].push_back(i);
      for (uint32_t s = blocks_[i].first; s < blocks_[i].last; ++s) left_[s] += blocks_[i].size;
    }
    placed_.assign(blocks_.size(), false);
    weights_.assign(blocks_.size(), 0);
    failures_.assign(floor_.size(), 1);
    for (uint32_t s = 0; s < left_.size(); ++s) hash_ ^= FloorHash(s);
  }

  bool Fits() const {
    return std::ranges::all_of(left_, [this](int64_t left) { return left <= capacity_; });
  }

  /// False without stopped(): there is no solution. What was learned is kept for the next search.
  bool Search(uint64_t limit, uint64_t& nodes, const StopFunction& stop) {
    limit_ = limit;
    nodes_ = 0;
    stopped_ = false;
    const bool found = Descend(0, stop);
    nodes += nodes_;
    return found;
  }
  bool stopped() const { return stopped_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

  /// Sets the order in which choices are tried.
  void Rank(int variant, Random& random) {
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      const auto size = static_cast<double>(blocks_[i].size);
      const double width = blocks_[i].last - blocks_[i].first;
      const double base = variant % 3 == 0 ? size * width : variant % 3 == 1 ? width : size;
      weights_[i] = base * (variant < 3 ? 1 : random.Uniform(0.5, 1.5));
    }
    for (auto* lists : {&begins_, &ends_})
      for (std::vector<uint32_t>& list : *lists)
        std::ranges::stable_sort(
            list, [this](uint32_t a, uint32_t b) { return weights_[a] > weights_[b]; });
  }

 private:
  void MakeBlocks(const std::vector<Buffer>& buffers) {
    std::vector<int64_t> times;
    for (const Buffer& buffer : buffers) {
      times.push_back(buffer.begin);
      times.push_back(buffer.end);
    }
    std::ranges::sort(times);
    times.erase(std::ranges::unique(times).begin(), times.end());
    const auto section = [&](int64_t time) {
      return static_cast<uint32_t>(std::ranges::lower_bound(times, time) - times.begin());
    };
    for (uint32_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].size > 0)
        blocks_.push_back({section(buffers[i].begin), section(buffers[i].end), buffers[i].size, i});
    const size_t sections = times.empty() ? 0 : times.size() - 1;
    floor_.assign(sections, 0);
    left_.assign(sections, 0);
    begins_.resize(sections);
    ends_.resize(sections);
    remaining_ = blocks_.size();
    deepest_ = static_cast<uint32_t>(blocks_.size()) + 4096;  // keeps the stack small
  }

  uint64_t FloorHash(uint32_t section) const {
    return Mix64(Mix64(section + 1) + static_cast<uint64_t>(floor_[section]));
  }
  /// The floor, or a wall where nothing is left to place.
  int64_t Height(uint32_t section) const { return left_[section] == 0 ? kWall : floor_[section]; }

  bool Descend(uint32_t depth, const StopFunction& stop) {
    if (remaining_ == 0) return true;
    if (++nodes_ > limit_ || depth > deepest_ || ((nodes_ & 255) == 0 && stop())) {
      stopped_ = true;
      return false;
    }
    if (seen_.contains(hash_)) return false;
    if (choices_.size() <= depth) choices_.resize(depth + 1);
    Branch(choices_[depth]);
    for (size_t i = 0; i < choices_[depth].size(); ++i) {
      const Choice choice = choices_[depth][i];
      if (Try(choice, depth, stop)) return true;
      if (stopped_) return false;
    }
    if (seen_.size() < kMostSeen) seen_.insert(hash_);
    return false;
  }

  bool Try(const Choice& choice, uint32_t depth, const StopFunction& stop) {
    const uint64_t hash = hash_;
    if (choice.waste) {
      const std::vector<int64_t> before(floor_.begin() + choice.first,
                                        floor_.begin() + choice.last);
      Raise(choice.first, choice.last, choice.floor, 0);
      if (Descend(depth + 1, stop)) return true;
      std::ranges::copy(before, floor_.begin() + choice.first);
    } else {
      const Block& block = blocks_[choice.block];
      const int64_t offset = floor_[block.first];
      placed_[choice.block] = true;
      --remaining_;
      offsets_[block.buffer] = offset;
      hash_ ^= Mix64(0x51ab1e + choice.block);
      Raise(block.first, block.last, offset + block.size, block.size);
      if (Descend(depth + 1, stop)) return true;
      for (uint32_t s = block.first; s < block.last; ++s) {
        floor_[s] = offset;
        left_[s] += block.size;
      }
      placed_[choice.block] = false;
      ++remaining_;
    }
    hash_ = hash;
    return false;
  }

  void Raise(uint32_t first, uint32_t last, int64_t floor, int64_t size) {
    for (uint32_t s = first; s < last; ++s) {
      hash_ ^= FloorHash(s);
      floor_[s] = floor;
      left_[s] -= size;
      hash_ ^= FloorHash(s);
    }
  }

  /// The choices at the valley and side with the fewest, where dead ends of the past count like
  /// fewer choices; none if the skyline is a dead end.
  void Branch(std::vector<Choice>& best) {
    best.clear();
    double least = std::numeric_limits<double>::infinity();
    std::optional<Valley> chosen;
    int64_t chosen_rim = 0;
    for (uint32_t first = 0; first < floor_.size();) {
      uint32_t last = first + 1;
      while (last < floor_.size() && Height(last) == Height(first)) ++last;
      const int64_t height = Height(first);
      const int64_t before = first == 0 ? kWall : Height(first - 1);
      const int64_t after = last == floor_.size() ? kWall : Height(last);
      if (height != kWall && before > height && after > height) {
        const int64_t rim = std::min(before, after);
        for (const bool left : {true, false}) {
          const Valley valley{first, last, left};
          double& failures = failures_[left ? first : last - 1];
          const size_t count = Count(valley, rim);
          if (count == 0) {
            failures += 1;
            return;
          }
          const double score = count == 1 ? 0 : static_cast<double>(count) / failures;
          if (score >= least) continue;
          least = score;
          chosen = valley;
          chosen_rim = rim;
        }
      }
      first = last;
    }
    if (chosen) List(*chosen, chosen_rim, best);
  }

  bool Inside(uint32_t block, const Valley& valley) const {
    return !placed_[block] && blocks_[block].first >= valley.first &&
           blocks_[block].last <= valley.last;
  }
  /// False if the part of the valley beside the block could then not be filled and must be.
  bool LeavesNoHole(uint32_t block, const Valley& valley) const {
    const Block& b = blocks_[block];
    if (valley.left ? b.last == valley.last : b.first == valley.first) return true;
    const uint32_t beside = valley.left ? b.last : b.first - 1;
    if (capacity_ - floor_[beside] - left_[beside] > 0) return true;
    const auto& neighbours = valley.left ? begins_[beside] : ends_[beside];
    return std::ranges::any_of(neighbours, [&](uint32_t other) { return Inside(other, valley); });
  }
  bool IsCandidate(uint32_t block, const Valley& valley) const {
    return Inside(block, valley) && LeavesNoHole(block, valley);
  }
  const std::vector<uint32_t>& Candidates(const Valley& valley) const {
    return valley.left ? begins_[valley.first] : ends_[valley.last - 1];
  }

  size_t Count(const Valley& valley, int64_t rim) const {
    const auto& candidates = Candidates(valley);
    const auto blocks = static_cast<size_t>(std::ranges::count_if(
        candidates, [&](uint32_t block) { return IsCandidate(block, valley); }));
    return blocks + (WasteOf(valley, rim).waste ? 1 : 0);
  }

  void List(const Valley& valley, int64_t rim, std::vector<Choice>& choices) const {
    choices.clear();
    const int64_t depth = rim == kWall ? kWall : rim - floor_[valley.first];
    for (const uint32_t block : Candidates(valley)) {
      if (!IsCandidate(block, valley)) continue;
      const bool twin = std::ranges::any_of(choices, [&](const Choice& other) {
        const Block &a = blocks_[other.block], &b = blocks_[block];
        return a.first == b.first && a.last == b.last && a.size == b.size;
      });
      if (!twin) choices.push_back({.block = block});
    }
    // A block that fills the valley up to its rim leaves no new corner.
    std::ranges::stable_partition(choices, [&](const Choice& choice) {
      const Block& block = blocks_[choice.block];
      return block.size == depth && block.last - block.first == valley.last - valley.first;
    });
    const Choice waste = WasteOf(valley, rim);
    if (waste.waste) choices.push_back(waste);
  }

  /// Leaving the side's sections empty up to the next height at which something can lie; not
  /// `waste` if that is above what their remaining buffers allow.
  Choice WasteOf(const Valley& valley, int64_t rim) const {
    const int64_t floor = floor_[valley.first];
    const uint32_t edge = valley.left ? valley.first : valley.last - 1;
    if (capacity_ - floor - left_[edge] <= 0) return {};
    int64_t next = rim;
    uint32_t first = valley.first, last = valley.last;
    for (uint32_t s = valley.first; s < valley.last; ++s) {
      for (const uint32_t block : begins_[s]) {
        if (!Inside(block, valley)) continue;
        const Block& b = blocks_[block];
        if (valley.left ? b.first == valley.first : b.last == valley.last) continue;
        next = std::min(next, floor + b.size);
        (valley.left ? last : first) = valley.left ? std::min(last, b.first)
                                                   : std::max(first, b.last);
      }
    }
    if (next == kWall) return {};
    for (uint32_t s = first; s < last; ++s)
      if (next + left_[s] > capacity_) return {};
    return {true, 0, first, last, next};
  }

  int64_t capacity_;
  std::vector<Block> blocks_;
  std::vector<int64_t> offsets_;                      ///< by buffer
  std::vector<int64_t> floor_, left_;                 ///< by section; left_: sizes not placed yet
  std::vector<std::vector<uint32_t>> begins_, ends_;  ///< blocks by first and last section
  std::vector<bool> placed_;
  std::vector<double> weights_;
  std::vector<double> failures_;  ///< by section: dead ends there, from 1
  size_t remaining_ = 0;
  uint64_t hash_ = 0;
  std::unordered_set<uint64_t> seen_;         ///< skylines without a solution
  std::vector<std::vector<Choice>> choices_;  ///< by depth
  uint64_t nodes_ = 0, limit_ = 0;
  uint32_t deepest_ = 0;
  bool stopped_ = false;
};

}  // namespace

SkylineResult SearchCapacity(const std::vector<Buffer>& buffers, int64_t capacity,
                             uint64_t node_limit, uint64_t seed, const StopFunction& stop) {
  SkylineResult result;
  Skyline skyline(buffers, capacity);
  if (!skyline.Fits()) return {SearchEnd::kImpossible, {}, 0};
  Random random(seed);
  uint64_t limit = 4096;
  for (int variant = 0; result.nodes < node_limit && !stop(); ++variant) {
    skyline.Rank(variant, random);
    const uint64_t allowed = std::min(limit, node_limit - result.nodes);
    if (skyline.Search(allowed, result.nodes, stop)) {
      result.end = SearchEnd::kFound;
      result.offsets = skyline.offsets();
      return result;
    }
    if (!skyline.stopped()) {
      result.end = SearchEnd::kImpossible;
      return result;
    }
    if (variant >= 2) limit += limit / 2;
  }
  return result;
}

}  // namespace atunner::planning
