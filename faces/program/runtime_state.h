// What CUDA's runtime interface remembers between calls: kernels and variables by the host's addresses, streams that
// are recorded, the last error of each thread.
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

/// One step of a graph.
using Work = std::function<int()>;
struct Graph {
  std::vector<std::pair<const void*, Work>> nodes;  ///< by handle, each behind those it waits for
  const void* Add(Work work);
  bool Replace(const void* node, Work work);
  int Run() const;
};

struct Stream {
  std::shared_ptr<Graph> recording;  ///< null: work is done at once
};
struct Event {
  std::shared_ptr<Graph> recording;
  double seconds = 0;
};

/// Does it now, or at the launch of the graph that the stream is recorded to. Holds the machine's mutex.
int DoIn(void* stream, Work work);
/// The stream; the default ones share one.
Stream& StreamOf(void* stream);

/// The kernel behind what the host calls it by; null, and an error, if there is none.
const Kernel* KernelOf(const void* function);
/// A copy of the parameters, for a launch now or later.
Work LaunchOf(const Kernel& kernel, const LaunchShape& shape, void** params);
/// Address and size of the variable behind the host's name for it.
std::optional<std::pair<uint64_t, uint64_t>> SymbolOf(const void* variable);

/// Rows and planes from and to memory or arrays.
int CopyAll(const char* call, const abi::Copy3D& copy);

using Lock = std::lock_guard<std::mutex>;

}  // namespace atunner::program
