// What CUDA's runtime interface remembers between calls: kernels and variables by the host's
// addresses, streams that are recorded, the last error of each thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "faces/program/machine.h"
#include "faces/program/runtime_abi.h"

namespace atunner::program {

/// The error becomes the thread's last one.
int Remember(int code);
int LastError(bool forget);

using Work = std::function<int()>;

struct Graph;

/// What stands for a step of a graph, and of its copies.
struct Node {
  // CUDA's
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
  std::vector<const Node*> after;  ///< it waits for them
  Graph* graph = nullptr;          ///< that it was made for
  abi::KernelNode kernel{};        ///< as the host gave it, with parameters of its own
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> params;
};

struct Graph {
  std::vector<std::shared_ptr<Node>> nodes;
  Node* Add(Node::Kind kind, Work work, std::vector<const Node*> after);
  bool Replace(const Node* node, Work work);
  /// By the work of a graph with as many nodes, in their order.
  bool ReplaceAll(const Graph& by);
  int Run() const;

 private:
  std::map<const Node*, Work> work_;
};
void* HandleOf(std::shared_ptr<Graph> graph);

struct Stream {
  std::shared_ptr<Graph> recording;  ///< null: work is done at once
  unsigned flags = 0;
  unsigned long long id = 0;
};
struct Event {
  std::shared_ptr<Graph> recording;
  double seconds = 0;
};
double Now();

/// The host's function may call CUDA again.
Work WorkOf(const abi::HostNode& node);

/// Does it now, or at the launch of the graph that the stream is recorded to. Holds the machine's
/// mutex.
int DoIn(void* stream, Node::Kind kind, Work work);
/// The stream; the default ones share one.
Stream& StreamOf(void* stream);

/// The kernel behind what the host calls it by; null, and an error, if there is none.
const Kernel* KernelOf(const void* function);
/// A copy of the parameters.
std::vector<std::vector<std::byte>> ValuesOf(const Kernel& kernel, void** params);
/// A launch now or later, with a copy of the parameters.
Work LaunchOf(const Kernel& kernel, const LaunchShape& shape, void** params);
/// Address and size of the variable behind the host's name for it.
std::optional<std::pair<uint64_t, uint64_t>> SymbolOf(const void* variable);

/// Rows and planes from and to memory or arrays.
int CopyAll(const char* call, const abi::Copy3D& copy);

using Lock = std::lock_guard<std::mutex>;

}  // namespace atunner::program
