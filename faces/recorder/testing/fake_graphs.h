// Graphs of a fake driver, for tests.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "faces/recorder/driver.h"

namespace atunner::recorder {

struct FakeNode {
  NodeType type = NodeType::kEmpty;
  KernelNodeParams kernel{};
  MemsetNodeParams fill{};
  ArrayCopy copy{};
  Graph child = nullptr;
  GraphNode original = nullptr;  ///< that this is a clone of
};
struct FakeGraph {
  std::deque<FakeNode> nodes;
  std::vector<std::pair<GraphNode, GraphNode>> edges;

  GraphNode Add(FakeNode node) {
    return reinterpret_cast<GraphNode>(&nodes.emplace_back(std::move(node)));
  }
  Graph handle() { return reinterpret_cast<Graph>(this); }
  static FakeGraph& Of(Graph graph) { return *reinterpret_cast<FakeGraph*>(graph); }
  static FakeNode& Of(GraphNode node) { return *reinterpret_cast<FakeNode*>(node); }
};

/// Functions of graphs. A clone lives until the end of the test program.
void AddFakeGraphs(Driver& driver);
/// What the functions were asked to do: "fill 4096", "set node 9".
std::vector<std::string>& FakeGraphCalls();

}  // namespace atunner::recorder
