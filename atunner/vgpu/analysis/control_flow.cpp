#include "atunner/vgpu/analysis/control_flow.h"

#include <algorithm>

namespace atunner::vgpu {
namespace {

constexpr size_t kNone = SIZE_MAX;

/// True if lanes may end with this instruction.
bool Ends(const ptx::Instruction& i) {
  return i.opcode == "exit" || i.opcode == "ret" || i.opcode == "trap";
}

/// Nodes from which the exit can be reached, in an order in which each node stands behind all its
/// successors but those of back edges.
std::vector<size_t> TowardsExit(const std::vector<std::vector<size_t>>& next, size_t exit) {
  std::vector<std::vector<size_t>> before(exit + 1);
  for (size_t from = 0; from < exit; ++from) {
    for (size_t to : next[from]) before[to].push_back(from);
  }
  std::vector<size_t> order;
  std::vector<bool> seen(exit + 1, false);
  std::vector<std::pair<size_t, size_t>> stack = {{exit, 0}};
  seen[exit] = true;
  while (!stack.empty()) {
    auto& [node, at] = stack.back();
    if (at == before[node].size()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const size_t from = before[node][at++];
    if (seen[from]) continue;
    seen[from] = true;
    stack.emplace_back(from, 0);
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace

ControlFlow::ControlFlow(const ptx::Function& function)
    : blocks_(BlocksOf(function)), next_(blocks_.size()), block_of_(function.body.size()) {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const BasicBlock& block = blocks_[b];
    for (size_t i = block.first; i < block.end; ++i) block_of_[i] = b;
    next_[b] = block.next;
    if (next_[b].empty() || Ends(function.body[block.end - 1])) next_[b].push_back(exit());
    std::ranges::sort(next_[b]);
    next_[b].erase(std::unique(next_[b].begin(), next_[b].end()), next_[b].end());
  }
  FindJoins();
  if (always_ends_) FindDeciders();
}

// Immediate dominators of the reversed graph: Cooper, Harvey and Kennedy, "A simple, fast dominance
// algorithm", 2001.
void ControlFlow::FindJoins() {
  const std::vector<size_t> order = TowardsExit(next_, exit());
  always_ends_ = order.size() == blocks_.size() + 1;
  if (!always_ends_) return;
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  join_.assign(order.size(), kNone);
  join_[exit()] = exit();
  const auto meet = [&](size_t a, size_t b) {
    while (a != b) {
      while (place[a] > place[b]) a = join_[a];
      while (place[b] > place[a]) b = join_[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t node : order) {
      if (node == exit()) continue;
      size_t found = kNone;
      for (size_t next : next_[node]) {
        if (join_[next] != kNone) found = found == kNone ? next : meet(found, next);
      }
      changed |= found != join_[node];
      join_[node] = found;
    }
  }
}

void ControlFlow::FindDeciders() {
  deciders_.resize(blocks_.size());
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (!Decides(b)) continue;
    for (size_t next : next_[b]) {
      for (size_t at = next; at != join_[b] && at != exit(); at = join_[at]) {
        if (std::ranges::find(deciders_[at], b) == deciders_[at].end()) deciders_[at].push_back(b);
      }
    }
  }
}

std::vector<bool> ControlFlow::Side(size_t block, size_t successor) const {
  std::vector<bool> marked(blocks_.size(), false);
  std::vector<size_t> open = {successor};
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (at == join_[block] || at == exit() || marked[at]) continue;
    marked[at] = true;
    open.insert(open.end(), next_[at].begin(), next_[at].end());
  }
  return marked;
}

bool ControlFlow::HasLoop(size_t block, const std::vector<bool>& marked) const {
  if (marked[block]) return true;
  // Depth-first search; 1 = on the path, 2 = left.
  std::vector<uint8_t> state(blocks_.size(), 0);
  for (size_t start = 0; start < blocks_.size(); ++start) {
    if (!marked[start] || state[start] != 0) continue;
    std::vector<std::pair<size_t, size_t>> stack = {{start, 0}};
    state[start] = 1;
    while (!stack.empty()) {
      auto& [node, at] = stack.back();
      if (at == next_[node].size()) {
        state[node] = 2;
        stack.pop_back();
        continue;
      }
      const size_t next = next_[node][at++];
      if (next == exit() || !marked[next] || state[next] == 2) continue;
      if (state[next] == 1) return true;
      state[next] = 1;
      stack.emplace_back(next, 0);
    }
  }
  return false;
}

}  // namespace atunner::vgpu
