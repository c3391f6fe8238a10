#include "faces/recorder/testing/fake_graphs.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner::recorder {
namespace {

void Say(std::string text) { FakeGraphCalls().push_back(std::move(text)); }

std::deque<FakeGraph>& Clones() {
  static std::deque<FakeGraph> clones;
  return clones;
}

Graph CloneOf(Graph graph) {
  FakeGraph& clone = Clones().emplace_back();
  for (FakeNode& node : FakeGraph::Of(graph).nodes) {
    FakeNode copy = node;
    copy.original = reinterpret_cast<GraphNode>(&node);
    if (copy.child != nullptr) copy.child = CloneOf(copy.child);
    clone.Add(copy);
  }
  const auto in_clone = [&](GraphNode node) {
    const auto at = std::ranges::find(clone.nodes, node, &FakeNode::original);
    return reinterpret_cast<GraphNode>(&*at);
  };
  for (const auto& [from, to] : FakeGraph::Of(graph).edges)
    clone.edges.emplace_back(in_clone(from), in_clone(to));
  return clone.handle();
}

/// The other ends of edges at `node`, in any of the graphs.
int Ends(GraphNode node, bool before, GraphNode* ends, size_t* count) {
  size_t found = 0;
  for (const FakeGraph& graph : Clones()) {
    for (const auto& [from, to] : graph.edges) {
      if ((before ? to : from) != node) continue;
      if (ends != nullptr) ends[found] = before ? from : to;
      ++found;
    }
  }
  *count = found;
  return 0;
}

void AddReading(Driver& driver) {
  driver.cuGraphGetNodes = [](Graph graph, GraphNode* nodes, size_t* count) {
    FakeGraph& of = FakeGraph::Of(graph);
    for (size_t i = 0; nodes != nullptr && i < of.nodes.size(); ++i)
      nodes[i] = reinterpret_cast<GraphNode>(&of.nodes[i]);
    *count = of.nodes.size();
    return 0;
  };
  driver.cuGraphGetEdges = [](Graph graph, GraphNode* from, GraphNode* to, size_t* count) {
    const FakeGraph& of = FakeGraph::Of(graph);
    for (size_t i = 0; from != nullptr && i < of.edges.size(); ++i)
      std::tie(from[i], to[i]) = of.edges[i];
    *count = of.edges.size();
    return 0;
  };
  driver.cuGraphNodeGetType = [](GraphNode node, int* type) {
    *type = static_cast<int>(FakeGraph::Of(node).type);
    return 0;
  };
  driver.cuGraphKernelNodeGetParams_v2 = [](GraphNode node, KernelNodeParams* params) {
    *params = FakeGraph::Of(node).kernel;
    return 0;
  };
  driver.cuGraphMemsetNodeGetParams = [](GraphNode node, MemsetNodeParams* params) {
    *params = FakeGraph::Of(node).fill;
    return 0;
  };
  driver.cuGraphMemcpyNodeGetParams = [](GraphNode node, ArrayCopy* params) {
    *params = FakeGraph::Of(node).copy;
    return 0;
  };
  driver.cuGraphChildGraphNodeGetGraph = [](GraphNode node, Graph* child) {
    *child = FakeGraph::Of(node).child;
    return 0;
  };
  driver.cuGraphNodeGetDependencies = [](GraphNode node, GraphNode* nodes, size_t* count) {
    return Ends(node, true, nodes, count);
  };
  driver.cuGraphNodeGetDependentNodes = [](GraphNode node, GraphNode* nodes, size_t* count) {
    return Ends(node, false, nodes, count);
  };
}

void AddChanging(Driver& driver) {
  driver.cuGraphClone = [](Graph* clone, Graph graph) {
    *clone = CloneOf(graph);
    return 0;
  };
  driver.cuGraphNodeFindInClone = [](GraphNode* found, GraphNode node, Graph clone) {
    for (FakeNode& one : FakeGraph::Of(clone).nodes) {
      if (one.original == node) *found = reinterpret_cast<GraphNode>(&one);
    }
    return *found == nullptr ? cuda::kInvalidValue : 0;
  };
  driver.cuGraphKernelNodeSetParams_v2 = [](GraphNode node, const KernelNodeParams* params) {
    FakeGraph::Of(node).kernel = *params;
    return 0;
  };
  driver.cuGraphExecKernelNodeSetParams_v2 = [](GraphExec, GraphNode,
                                                const KernelNodeParams* params) {
    Say(fmt::format("change to {}", *static_cast<int*>(params->params[0])));
    return 0;
  };
  driver.cuGraphAddMemcpyNode = [](GraphNode* node, Graph graph, const GraphNode* before,
                                   size_t count, const ArrayCopy* copy, Context) {
    FakeGraph& of = FakeGraph::Of(graph);
    *node = of.Add({.type = NodeType::kMemcpy, .copy = *copy});
    for (size_t i = 0; i < count; ++i) of.edges.emplace_back(before[i], *node);
    return 0;
  };
  driver.cuGraphAddDependencies = [](Graph graph, const GraphNode* from, const GraphNode* to,
                                     size_t count) {
    for (size_t i = 0; i < count; ++i) FakeGraph::Of(graph).edges.emplace_back(from[i], to[i]);
    return 0;
  };
}

void AddRunning(Driver& driver) {
  driver.cuGraphInstantiateWithFlags = [](GraphExec* exec, Graph graph, unsigned long long) {
    *exec = reinterpret_cast<GraphExec>(graph);
    return 0;
  };
  driver.cuGraphDestroy = [](Graph) { return 0; };
  driver.cuGraphExecDestroy = [](GraphExec) { return 0; };
  driver.cuCtxGetCurrent = [](Context* context) {
    *context = nullptr;
    return 0;
  };
  driver.cuLaunchKernelEx = [](const LaunchConfig*, Function, void**, void**) { return 0; };
  driver.cuMemsetD32Async = [](DevicePointer to, unsigned value, size_t count, Stream) {
    Say(fmt::format("fill {} words at {} with {}", count, to, value));
    return 0;
  };
  driver.cuMemsetD2D8Async = [](DevicePointer to, size_t pitch, unsigned char value, size_t width,
                                size_t height, Stream) {
    Say(fmt::format("fill {}x{} bytes at {} by {} with {}", width, height, to, pitch, value));
    return 0;
  };
  driver.cuMemcpy3DAsync_v2 = [](const ArrayCopy* copy, Stream) {
    Say(fmt::format("copy {} bytes", copy->width_bytes));
    return 0;
  };
}

}  // namespace

std::vector<std::string>& FakeGraphCalls() {
  static std::vector<std::string> calls;
  return calls;
}

void AddFakeGraphs(Driver& driver) {
  FakeGraphCalls().clear();
  AddReading(driver);
  AddChanging(driver);
  AddRunning(driver);
}

}  // namespace atunner::recorder
