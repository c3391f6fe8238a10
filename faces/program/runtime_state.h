// State of CUDA's runtime interface between calls: kernels and variables by their host addresses,
// streams that are recorded to graphs, the last error of each thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "faces/program/runtime_abi.h"
#include "faces/program/virtual_device.h"

namespace atunner::program {

/// Stores an error as the thread's last one, and returns it.
int Remember(int code);
int LastError(bool forget);

using Work = std::function<int()>;

struct Graph;

/// A step of a graph, and of the executable copies of the graph.
struct Node {
  /// The values of cudaGraphNodeType.
  enum Kind : int {
    kKernel,
    kCopy,
    kFill,
    kHost,
    kGraph,
    kEmpty,
    kWait,
    kRecord,
    kAllocate = 10,
    kFree
  };
  Kind kind = kKernel;
  std::vector<const Node*> after;  ///< nodes that must have run before it
  Graph* graph = nullptr;          ///< the graph that it was made for
  abi::KernelNode kernel{};        ///< as the host gave it, with its own copy of the parameters
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> params;
};

struct Graph {
  std::vector<std::shared_ptr<Node>> nodes;
  Node* Add(Node::Kind kind, Work work, std::vector<const Node*> after);
  bool Replace(const Node* node, Work work);
  /// Replaces the work of all nodes by that of another graph with as many nodes, in their order.
  bool ReplaceAll(const Graph& by);
  int Run() const;

 private:
  std::map<const Node*, Work> work_;
};
void* HandleOf(std::shared_ptr<Graph> graph);

struct Stream {
  std::shared_ptr<Graph> recording;  ///< nullptr = work is done at once
  unsigned flags = 0;
  unsigned long long id = 0;
};
struct Event {
  std::shared_ptr<Graph> recording;
  double seconds = 0;
};
double Now();

/// Calls a function of the host, which may call CUDA again.
Work WorkOf(const abi::HostNode& node);

/// Does the work now, or at each launch of the graph to which the stream is recorded. Locks the
/// device's mutex.
int DoIn(void* stream, Node::Kind kind, Work work);
/// The stream of a handle; all default streams are one.
Stream& StreamOf(void* stream);

/// The kernel of a host stub or handle; nullptr, and an error, if there is none.
const Kernel* KernelOf(const void* function);
/// A copy of the parameters.
std::vector<std::vector<std::byte>> ValuesOf(const Kernel& kernel, void** params);
/// A launch now or later, with a copy of the parameters.
Work LaunchOf(const Kernel& kernel, const LaunchShape& shape, void** params);
/// Device address and size of the variable with this host address.
std::optional<std::pair<uint64_t, uint64_t>> SymbolOf(const void* variable);

/// Copies rows and planes between memory and arrays.
int CopyAll(const char* call, const abi::Copy3D& copy);

using Lock = std::lock_guard<std::mutex>;

}  // namespace atunner::program
