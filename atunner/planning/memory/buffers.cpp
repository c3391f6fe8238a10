#include "atunner/planning/memory/buffers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace atunner::planning {
namespace {

/// Begins and ends in the order of time; at equal times ends come first.
struct Change {
  int64_t time = 0;
  bool begins = false;
  size_t buffer = 0;
};

std::vector<Change> Changes(const std::vector<Buffer>& buffers) {
  std::vector<Change> changes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    changes.push_back({buffers[i].begin, true, i});
    changes.push_back({buffers[i].end, false, i});
  }
  std::ranges::sort(changes, {}, [](const Change& c) { return std::pair(c.time, c.begins); });
  return changes;
}

}  // namespace

int64_t LowerBound(const std::vector<Buffer>& buffers) {
  int64_t live = 0, most = 0;
  for (const Change& change : Changes(buffers)) {
    live += change.begins ? buffers[change.buffer].size : -buffers[change.buffer].size;
    most = std::max(most, live);
  }
  return most;
}

Status CheckBuffers(const MemoryProblem& problem) {
  constexpr int64_t kMost = int64_t{1} << 60;
  int64_t sum = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const std::string name = "buffer " + problem.ids[i];
    if (buffer.size < 0) return Invalid(name + " has a negative size");
    if (buffer.begin >= buffer.end)
      return Invalid(name + " has an empty lifetime", "", "the end is the first time after it");
    if (buffer.size > kMost - sum) return Invalid("the sizes add up to more than 2^60 bytes");
    sum += buffer.size;
  }
  return {};
}

int64_t PeakOf(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets) {
  int64_t peak = 0;
  for (size_t i = 0; i < buffers.size(); ++i) peak = std::max(peak, offsets[i] + buffers[i].size);
  return peak;
}

bool IsValid(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets) {
  if (offsets.size() != buffers.size()) return false;
  std::map<int64_t, int64_t> live;  // offset -> end, of the buffers alive at the moment
  for (const Change& change : Changes(buffers)) {
    const int64_t size = buffers[change.buffer].size;
    if (size == 0) continue;
    const int64_t begin = offsets[change.buffer], end = begin + size;
    if (begin < 0) return false;
    if (!change.begins) {
      live.erase(begin);
      continue;
    }
    const auto next = live.lower_bound(begin);
    if (next != live.end() && next->first < end) return false;
    if (next != live.begin() && std::prev(next)->second > begin) return false;
    live.emplace(begin, end);
  }
  return true;
}

}  // namespace atunner::planning
