// CUDA's runtime interface: graphs.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ranges>

#include "faces/program/runtime_state.h"

namespace atunner::program {

Node* Graph::Add(Node::Kind kind, Work work, std::vector<const Node*> after) {
  nodes.push_back(std::make_shared<Node>(Node{kind, std::move(after), this}));
  work_[nodes.back().get()] = std::move(work);
  return nodes.back().get();
}

bool Graph::Replace(const Node* node, Work work) {
  const auto at = work_.find(node);
  if (at == work_.end()) return false;
  at->second = std::move(work);
  return true;
}

bool Graph::ReplaceAll(const Graph& by) {
  if (nodes.size() != by.nodes.size()) return false;
  for (size_t i = 0; i < nodes.size(); ++i) work_[nodes[i].get()] = by.work_.at(by.nodes[i].get());
  return true;
}

int Graph::Run() const {
  std::set<const Node*> done;
  for (size_t before = 0; done.size() < nodes.size(); before = done.size()) {
    for (const auto& node : nodes) {
      const auto is_done = [&](const Node* other) {
        return done.contains(other) || !work_.contains(other);
      };
      if (done.contains(node.get()) || !std::ranges::all_of(node->after, is_done)) continue;
      if (const int code = work_.at(node.get())()) return code;
      done.insert(node.get());
    }
    if (done.size() == before) return kInvalidValue;  // the nodes form a cycle
  }
  return kSuccess;
}

void* HandleOf(std::shared_ptr<Graph> graph) {
  return new std::shared_ptr<Graph>(std::move(graph));
}

/// Calls a function of the host, which may call CUDA again.
Work WorkOf(const abi::HostNode& node) {
  return [node]() -> int {
    std::mutex& mutex = VirtualDevice::Get().mutex;
    mutex.unlock();
    node.function(node.argument);
    mutex.lock();
    return kSuccess;
  };
}

}  // namespace atunner::program

using namespace atunner::program;  // a file of C functions

namespace {

Graph& GraphOf(void* graph) { return **static_cast<std::shared_ptr<Graph>*>(graph); }

/// The dependencies of a node, as a call gives them.
struct Waits {
  const Node* const* nodes;
  size_t count;
};

int AddNode(const Node** node, void* graph, Node::Kind kind, Waits waits, Work work) {
  const Lock lock(VirtualDevice::Get().mutex);
  *node = GraphOf(graph).Add(kind, std::move(work), {waits.nodes, waits.nodes + waits.count});
  return kSuccess;
}

/// Keeps the parameters of a node for later queries.
void Keep(Node& node, const abi::KernelNode& params) {
  node.kernel = params;
  node.values = ValuesOf(*KernelOf(params.function), params.params);
  node.params.clear();
  for (auto& value : node.values) node.params.push_back(value.data());
  node.kernel.params = node.params.data();
}

/// nullptr when there is no such kernel.
Work WorkOf(const abi::KernelNode& node) {
  const Lock lock(VirtualDevice::Get().mutex);
  const Kernel* kernel = KernelOf(node.function);
  if (kernel == nullptr) return nullptr;
  const abi::Dim3 &grid = node.grid, &block = node.block;
  return LaunchOf(*kernel,
                  {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, {}, node.shared_bytes},
                  node.params);
}
Work WorkOf(const abi::Copy3D& copy) {
  return [copy] { return CopyAll("cudaMemcpy3D", copy); };
}
Work WorkOf(const abi::FillNode& fill) {
  return [fill]() -> int {
    return VirtualDevice::Get().Fill("a graph's memset", {static_cast<char*>(fill.at), fill.pitch},
                                     fill.value, fill.value_bytes, fill.width * fill.value_bytes,
                                     fill.height);
  };
}
Work CopyWork(void* to, const void* from, size_t bytes) {
  return [=]() -> int { return VirtualDevice::Get().Copy("a graph's copy", to, from, bytes); };
}
Work Nothing() {
  return [] { return 0; };
}

int Replace(void* graph, const Node* node, Work work) {
  if (!work) return Remember(kInvalidDeviceFunction);
  const Lock lock(VirtualDevice::Get().mutex);
  return GraphOf(graph).Replace(node, std::move(work)) ? kSuccess : Remember(kInvalidValue);
}

/// An address inside a variable; nullptr, and an error, if there is no such variable.
void* PlaceIn(const void* variable, size_t offset) {
  const Lock lock(VirtualDevice::Get().mutex);
  const auto symbol = SymbolOf(variable);
  if (!symbol) Remember(kInvalidSymbol);
  return symbol ? reinterpret_cast<void*>(symbol->first + offset)
                : nullptr;  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cudaMalloc(void** pointer, size_t bytes);

int cudaGraphCreate(void** graph, unsigned) {
  *graph = HandleOf(std::make_shared<Graph>());
  return kSuccess;
}
int cudaGraphClone(void** clone, void* graph) {
  const Lock lock(VirtualDevice::Get().mutex);
  *clone = HandleOf(std::make_shared<Graph>(GraphOf(graph)));
  return kSuccess;
}
int cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  return cudaGraphClone(executable, graph);
}
int cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return cudaGraphClone(executable, graph);
}
int cudaGraphDestroy(void* graph) {
  delete static_cast<std::shared_ptr<Graph>*>(graph);
  return kSuccess;
}
int cudaGraphExecDestroy(void* executable) { return cudaGraphDestroy(executable); }
int cudaGraphUpload(void*, void*) { return kSuccess; }
int cudaGraphLaunch(void* executable, void* stream) {
  return DoIn(stream, Node::kGraph,
              [graph = *static_cast<std::shared_ptr<Graph>*>(executable)] { return graph->Run(); });
}
/// Nodes at the same positions correspond; the graph's work replaces that of the executable.
int cudaGraphExecUpdate(void* executable, void* graph, int* info) {
  const Lock lock(VirtualDevice::Get().mutex);
  std::memset(info, 0, 2 * sizeof(void*));
  if (!GraphOf(executable).ReplaceAll(GraphOf(graph))) {
    *info = 2;  // the topology changed
    return Remember(910);
  }
  return kSuccess;
}
int cudaGraphGetNodes(void* graph, const Node** nodes, size_t* count) {
  const Lock lock(VirtualDevice::Get().mutex);
  const Graph& all = GraphOf(graph);
  for (size_t i = 0; nodes != nullptr && i < std::min(*count, all.nodes.size()); ++i)
    nodes[i] = all.nodes[i].get();
  *count = all.nodes.size();
  return kSuccess;
}
int cudaGraphGetRootNodes(void* graph, const Node** nodes, size_t* count) {
  const Lock lock(VirtualDevice::Get().mutex);
  size_t found = 0;
  for (const auto& node : GraphOf(graph).nodes) {
    if (!node->after.empty()) continue;
    if (nodes != nullptr && found < *count) nodes[found] = node.get();
    ++found;
  }
  *count = found;
  return kSuccess;
}
int cudaGraphNodeGetType(const Node* node, int* kind) {
  *kind = node->kind;
  return kSuccess;
}
int cudaGraphAddDependencies(void* graph, const Node** from, const Node** to, const void*,
                             size_t count) {
  const Lock lock(VirtualDevice::Get().mutex);
  for (const auto& node : GraphOf(graph).nodes) {
    for (size_t i = 0; i < count; ++i) {
      if (to[i] == node.get()) node->after.push_back(from[i]);
    }
  }
  return kSuccess;
}
int cudaGraphAddEmptyNode(const Node** node, void* graph, const Node** waits, size_t count) {
  return AddNode(node, graph, Node::kEmpty, {waits, count}, Nothing());
}
int cudaGraphAddKernelNode(const Node** node, void* graph, const Node** waits, size_t count,
                           const abi::KernelNode* params) {
  Work work = WorkOf(*params);
  if (!work) return Remember(kInvalidDeviceFunction);
  const Lock lock(VirtualDevice::Get().mutex);
  Node* made = GraphOf(graph).Add(Node::kKernel, std::move(work), {waits, waits + count});
  Keep(*made, *params);
  *node = made;
  return kSuccess;
}
/// The parameters of a recorded launch are not available.
int cudaGraphKernelNodeGetParams(const Node* node, abi::KernelNode* params) {
  if (node->kernel.function == nullptr) return Remember(kInvalidValue);
  *params = node->kernel;
  return kSuccess;
}
int cudaGraphKernelNodeSetParams(Node* node, const abi::KernelNode* params) {
  Work work = WorkOf(*params);
  if (!work) return Remember(kInvalidDeviceFunction);
  const Lock lock(VirtualDevice::Get().mutex);
  Keep(*node, *params);
  return node->graph->Replace(node, std::move(work)) ? kSuccess : Remember(kInvalidValue);
}
int cudaGraphAddMemcpyNode(const Node** node, void* graph, const Node** waits, size_t count,
                           const abi::Copy3D* params) {
  return AddNode(node, graph, Node::kCopy, {waits, count}, WorkOf(*params));
}
int cudaGraphAddMemcpyNode1D(const Node** node, void* graph, const Node** waits, size_t count,
                             void* to, const void* from, size_t bytes, int) {
  return AddNode(node, graph, Node::kCopy, {waits, count}, CopyWork(to, from, bytes));
}
int cudaGraphAddMemcpyNodeToSymbol(const Node** node, void* graph, const Node** waits, size_t count,
                                   const void* variable, const void* from, size_t bytes,
                                   size_t offset, int) {
  void* to = PlaceIn(variable, offset);
  return to == nullptr
             ? static_cast<int>(kInvalidSymbol)
             : AddNode(node, graph, Node::kCopy, {waits, count}, CopyWork(to, from, bytes));
}
int cudaGraphAddMemcpyNodeFromSymbol(const Node** node, void* graph, const Node** waits,
                                     size_t count, void* to, const void* variable, size_t bytes,
                                     size_t offset, int) {
  const void* from = PlaceIn(variable, offset);
  return from == nullptr
             ? static_cast<int>(kInvalidSymbol)
             : AddNode(node, graph, Node::kCopy, {waits, count}, CopyWork(to, from, bytes));
}
int cudaGraphAddMemsetNode(const Node** node, void* graph, const Node** waits, size_t count,
                           const abi::FillNode* params) {
  return AddNode(node, graph, Node::kFill, {waits, count}, WorkOf(*params));
}
int cudaGraphAddHostNode(const Node** node, void* graph, const Node** waits, size_t count,
                         const abi::HostNode* params) {
  return AddNode(node, graph, Node::kHost, {waits, count}, WorkOf(*params));
}
int cudaGraphAddChildGraphNode(const Node** node, void* graph, const Node** waits, size_t count,
                               void* child) {
  return AddNode(node, graph, Node::kGraph, {waits, count},
                 [copy = GraphOf(child)] { return copy.Run(); });
}
int cudaGraphAddEventRecordNode(const Node** node, void* graph, const Node** waits, size_t count,
                                void* event) {
  return AddNode(node, graph, Node::kRecord, {waits, count}, [event] {
    static_cast<Event*>(event)->seconds = Now();
    return 0;
  });
}
int cudaGraphAddEventWaitNode(const Node** node, void* graph, const Node** waits, size_t count,
                              void*) {
  return AddNode(node, graph, Node::kWait, {waits, count}, Nothing());
}
/// The memory is allocated once, however often the graph runs.
int cudaGraphAddMemAllocNode(const Node** node, void* graph, const Node** waits, size_t count,
                             abi::AllocationNode* params) {
  if (const int code = cudaMalloc(&params->at, params->bytes)) return code;
  return AddNode(node, graph, Node::kAllocate, {waits, count}, Nothing());
}
int cudaGraphAddMemFreeNode(const Node** node, void* graph, const Node** waits, size_t count,
                            void*) {
  return AddNode(node, graph, Node::kFree, {waits, count}, Nothing());
}
int cudaGraphExecKernelNodeSetParams(void* executable, const Node* node,
                                     const abi::KernelNode* params) {
  return Replace(executable, node, WorkOf(*params));
}
int cudaGraphExecMemsetNodeSetParams(void* executable, const Node* node,
                                     const abi::FillNode* params) {
  return Replace(executable, node, WorkOf(*params));
}
int cudaGraphExecMemcpyNodeSetParams(void* executable, const Node* node,
                                     const abi::Copy3D* params) {
  return Replace(executable, node, WorkOf(*params));
}
int cudaGraphExecHostNodeSetParams(void* executable, const Node* node,
                                   const abi::HostNode* params) {
  return Replace(executable, node, WorkOf(*params));
}
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
