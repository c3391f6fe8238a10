#include "atunner/vgpu/timing/loop_depths.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

namespace atunner::vgpu {
namespace {

constexpr uint32_t kNone = ~0u;

/// Immediate dominators, by the order in which a search leaves the nodes (Cooper, Harvey and
/// Kennedy).
class Flow {
 public:
  explicit Flow(const std::vector<std::vector<uint32_t>>& successors)
      : successors_(successors), count_(static_cast<uint32_t>(successors.size())) {
    predecessors_.resize(count_);
    for (uint32_t node = 0; node < count_; ++node) {
      for (const uint32_t next : successors[node]) predecessors_[next].push_back(node);
    }
    Order();
    FindDominators();
  }

  std::vector<uint32_t> Depths() const {
    std::map<uint32_t, std::set<uint32_t>> bodies;  // by the loop's first node
    for (uint32_t node = 0; node < count_; ++node) {
      for (const uint32_t next : successors_[node]) {
        if (Dominates(next, node)) AddBody(next, node, bodies[next]);
      }
    }
    std::vector<uint32_t> depths(count_, 0);
    for (const auto& body : std::views::values(bodies)) {
      for (const uint32_t node : body) ++depths[node];
    }
    return depths;
  }

 private:
  /// Numbers the nodes as a search in depth leaves them; `root_`, above all, leads to every
  /// beginning.
  void Order() {
    number_.assign(count_, kNone);
    Search(0);
    for (uint32_t node = 0; node < count_; ++node) {
      if (predecessors_[node].empty()) Search(node);
    }
    for (uint32_t node = 0; node < count_; ++node) Search(node);  // circles that nothing leads to
    root_ = count_;
  }

  void Search(uint32_t begin) {
    if (begin >= count_ || number_[begin] != kNone) return;
    beginnings_.insert(begin);
    std::vector<std::pair<uint32_t, size_t>> path = {{begin, 0}};
    number_[begin] = 0;  // found; its number comes when it is left
    while (!path.empty()) {
      auto& [node, at] = path.back();
      if (at == successors_[node].size()) {
        number_[node] = static_cast<uint32_t>(left_.size());
        left_.push_back(node);
        path.pop_back();
        continue;
      }
      const uint32_t next = successors_[node][at++];
      if (number_[next] != kNone) continue;
      number_[next] = 0;
      path.emplace_back(next, 0);
    }
  }

  void FindDominators() {
    dominator_.assign(count_ + 1, kNone);  // by number
    dominator_[root_] = root_;
    for (bool changed = true; changed;) {
      changed = false;
      for (const uint32_t node : std::views::reverse(left_)) {
        uint32_t found = beginnings_.contains(node) ? root_ : kNone;
        for (const uint32_t before : predecessors_[node]) {
          const uint32_t other = number_[before];
          if (dominator_[other] != kNone) found = found == kNone ? other : Common(found, other);
        }
        if (dominator_[number_[node]] == found) continue;
        dominator_[number_[node]] = found;
        changed = true;
      }
    }
  }

  uint32_t Common(uint32_t a, uint32_t b) const {
    while (a != b) a < b ? a = dominator_[a] : b = dominator_[b];
    return a;
  }

  bool Dominates(uint32_t above, uint32_t node) const {
    uint32_t at = number_[node];
    while (at < number_[above]) at = dominator_[at];
    return at == number_[above];
  }

  /// All that reaches the edge back from `last` without passing the loop's first node.
  void AddBody(uint32_t first, uint32_t last, std::set<uint32_t>& body) const {
    body.insert(first);
    std::vector<uint32_t> open = {last};
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      if (!body.insert(node).second) continue;
      open.insert(open.end(), predecessors_[node].begin(), predecessors_[node].end());
    }
  }

  const std::vector<std::vector<uint32_t>>& successors_;
  uint32_t count_;
  uint32_t root_ = 0;
  std::vector<std::vector<uint32_t>> predecessors_;
  std::set<uint32_t> beginnings_;
  std::vector<uint32_t> number_, left_, dominator_;
};

}  // namespace

std::vector<uint32_t> LoopDepths(const std::vector<std::vector<uint32_t>>& successors) {
  return Flow(successors).Depths();
}

}  // namespace atunner::vgpu
