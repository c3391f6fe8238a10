// CUDA's runtime interface: streams, events and graphs. Work is done where it is asked for, so that streams and events
// only have to remember what is recorded.
#include <chrono>
#include <cstring>
#include <set>

#include "faces/program/runtime_state.h"

namespace atunner::program {
namespace {

thread_local int last_error = kSuccess;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool IsDefault(const void* stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

std::set<std::unique_ptr<Stream>>& Streams() {
  static auto* streams = new std::set<std::unique_ptr<Stream>>;
  return *streams;
}

}  // namespace

int Remember(int code) {
  if (code != kSuccess) last_error = code;
  return code;
}
int LastError(bool forget) { return forget ? std::exchange(last_error, kSuccess) : last_error; }

const void* Graph::Add(Work work) {
  static uintptr_t last = 0;                                   // unlike any other, also of clones
  const auto* handle = reinterpret_cast<const void*>(++last);  // NOLINT(performance-no-int-to-ptr)
  nodes.emplace_back(handle, std::move(work));
  return handle;
}
bool Graph::Replace(const void* node, Work work) {
  for (auto& [handle, old] : nodes) {
    if (handle != node) continue;
    old = std::move(work);
    return true;
  }
  return false;
}
int Graph::Run() const {
  for (const auto& [handle, work] : nodes) {
    if (const int code = work()) return code;
  }
  return kSuccess;
}

Stream& StreamOf(void* stream) {
  static auto* standard = new Stream;
  return IsDefault(stream) ? *standard : *static_cast<Stream*>(stream);
}

int DoIn(void* stream, Work work) {
  const Lock lock(Machine::Get().mutex);
  if (const auto& recording = StreamOf(stream).recording) {
    recording->Add(std::move(work));
    return kSuccess;
  }
  return Remember(work());
}

}  // namespace atunner::program

using namespace atunner::program;  // a file of C functions

namespace {

/// Errors of kernels come to light where the host waits.
int Wait() {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  return Remember(machine.TakeFault());
}

int MakeStream(void** stream) {
  const Lock lock(Machine::Get().mutex);
  *stream = Streams().insert(std::make_unique<Stream>()).first->get();
  return kSuccess;
}

Graph& GraphOf(void* graph) { return **static_cast<std::shared_ptr<Graph>*>(graph); }
void* HandleOf(std::shared_ptr<Graph> graph) { return new std::shared_ptr<Graph>(std::move(graph)); }

int AddNode(const void** node, void* graph, Work work) {
  const Lock lock(Machine::Get().mutex);
  *node = GraphOf(graph).Add(std::move(work));
  return kSuccess;
}

/// Null when there is no such kernel.
Work WorkOf(const abi::KernelNode& node) {
  const Lock lock(Machine::Get().mutex);
  const Kernel* kernel = KernelOf(node.function);
  if (kernel == nullptr) return nullptr;
  const abi::Dim3 &grid = node.grid, &block = node.block;
  return LaunchOf(*kernel, {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, {}, node.shared_bytes}, node.params);
}
Work WorkOf(const abi::Copy3D& copy) {
  return [copy] { return CopyAll("cudaMemcpy3D", copy); };
}
Work WorkOf(const abi::FillNode& fill) {
  return [fill]() -> int {
    return Machine::Get().Fill("a graph's memset", {static_cast<char*>(fill.at), fill.pitch}, fill.value,
                               fill.value_bytes, fill.width * fill.value_bytes, fill.height);
  };
}
/// The host's function may call CUDA again.
Work WorkOf(const abi::HostNode& node) {
  return [node]() -> int {
    std::mutex& mutex = Machine::Get().mutex;
    mutex.unlock();
    node.function(node.argument);
    mutex.lock();
    return kSuccess;
  };
}

int Replace(void* graph, const void* node, Work work) {
  if (!work) return Remember(kInvalidDeviceFunction);
  const Lock lock(Machine::Get().mutex);
  return GraphOf(graph).Replace(node, std::move(work)) ? kSuccess : Remember(kInvalidValue);
}

}  // namespace

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cudaGetLastError() { return LastError(true); }
int cudaPeekAtLastError() { return LastError(false); }
int cudaDeviceSynchronize() { return Wait(); }
int cudaThreadSynchronize() { return Wait(); }
int cudaDeviceReset() { return Wait(); }

int cudaStreamCreate(void** stream) { return MakeStream(stream); }
int cudaStreamCreateWithFlags(void** stream, unsigned) { return MakeStream(stream); }
int cudaStreamCreateWithPriority(void** stream, unsigned, int) { return MakeStream(stream); }
int cudaStreamDestroy(void* stream) {
  const Lock lock(Machine::Get().mutex);
  std::erase_if(Streams(), [&](const auto& known) { return known.get() == stream; });
  return kSuccess;
}
int cudaStreamSynchronize(void*) { return Wait(); }
int cudaStreamQuery(void*) { return Wait(); }
int cudaStreamGetFlags(void*, unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
int cudaStreamSetAttribute(void*, int, const void*) { return kSuccess; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return DoIn(stream, WorkOf(abi::HostNode{function, argument}));
}
int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* argument, unsigned) {
  function(stream, kSuccess, argument);
  return kSuccess;
}

int cudaEventCreateWithFlags(void** event, unsigned) {
  *event = new Event;
  return kSuccess;
}
int cudaEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }
int cudaEventDestroy(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
int cudaEventRecord(void* event, void* stream) {
  const Lock lock(Machine::Get().mutex);
  *static_cast<Event*>(event) = {StreamOf(stream).recording, Now()};
  return kSuccess;
}
int cudaEventRecordWithFlags(void* event, void* stream, unsigned) { return cudaEventRecord(event, stream); }
int cudaEventSynchronize(void*) { return Wait(); }
int cudaEventQuery(void*) { return Wait(); }
/// The time that the host took: what a program prints of it says nothing about a GPU.
int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
  *milliseconds = static_cast<float>(1e3 * (static_cast<Event*>(end)->seconds - static_cast<Event*>(begin)->seconds));
  return kSuccess;
}
/// A stream that waits for one that is recorded is recorded too.
int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  const Lock lock(Machine::Get().mutex);
  if (const auto& recording = static_cast<Event*>(event)->recording) StreamOf(stream).recording = recording;
  return kSuccess;
}

int cudaStreamBeginCapture(void* stream, int) {
  const Lock lock(Machine::Get().mutex);
  StreamOf(stream).recording = std::make_shared<Graph>();
  return kSuccess;
}
int cudaStreamEndCapture(void* stream, void** graph) {
  const Lock lock(Machine::Get().mutex);
  const std::shared_ptr<Graph> recorded = StreamOf(stream).recording;
  if (!recorded) return Remember(kInvalidValue);
  for (const auto& other : Streams()) {
    if (other->recording == recorded) other->recording = nullptr;
  }
  StreamOf(nullptr).recording = nullptr;
  *graph = HandleOf(recorded);
  return kSuccess;
}
int cudaStreamIsCapturing(void* stream, int* status) {
  const Lock lock(Machine::Get().mutex);
  *status = StreamOf(stream).recording ? 1 : 0;
  return kSuccess;
}
int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }

int cudaGraphCreate(void** graph, unsigned) {
  *graph = HandleOf(std::make_shared<Graph>());
  return kSuccess;
}
int cudaGraphClone(void** clone, void* graph) {
  const Lock lock(Machine::Get().mutex);
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
  return DoIn(stream, [graph = *static_cast<std::shared_ptr<Graph>*>(executable)] { return graph->Run(); });
}
/// Nodes in the same order are the same nodes; the graph's work replaces that of the executable.
int cudaGraphExecUpdate(void* executable, void* graph, int* info) {
  const Lock lock(Machine::Get().mutex);
  Graph& old = GraphOf(executable);
  const Graph& now = GraphOf(graph);
  const bool fits = old.nodes.size() == now.nodes.size();
  std::memset(info, 0, 2 * sizeof(void*));
  if (!fits) {
    *info = 2;  // the topology changed
    return Remember(910);
  }
  for (size_t i = 0; i < now.nodes.size(); ++i) old.nodes[i].second = now.nodes[i].second;
  return kSuccess;
}
int cudaGraphGetNodes(void* graph, const void** nodes, size_t* count) {
  const Lock lock(Machine::Get().mutex);
  const Graph& all = GraphOf(graph);
  for (size_t i = 0; nodes != nullptr && i < std::min(*count, all.nodes.size()); ++i) nodes[i] = all.nodes[i].first;
  *count = all.nodes.size();
  return kSuccess;
}
int cudaGraphAddEmptyNode(const void** node, void* graph, const void**, size_t) {
  return AddNode(node, graph, [] { return 0; });
}
int cudaGraphAddKernelNode(const void** node, void* graph, const void**, size_t, const abi::KernelNode* params) {
  Work work = WorkOf(*params);
  return work ? AddNode(node, graph, std::move(work)) : Remember(kInvalidDeviceFunction);
}
int cudaGraphAddMemcpyNode(const void** node, void* graph, const void**, size_t, const abi::Copy3D* params) {
  return AddNode(node, graph, WorkOf(*params));
}
int cudaGraphAddMemcpyNode1D(const void** node, void* graph, const void**, size_t, void* to, const void* from,
                             size_t bytes, int) {
  return AddNode(node, graph,
                 [=]() -> int { return Machine::Get().Copy("cudaGraphAddMemcpyNode1D", to, from, bytes); });
}
int cudaGraphAddMemsetNode(const void** node, void* graph, const void**, size_t, const abi::FillNode* params) {
  return AddNode(node, graph, WorkOf(*params));
}
int cudaGraphAddHostNode(const void** node, void* graph, const void**, size_t, const abi::HostNode* params) {
  return AddNode(node, graph, WorkOf(*params));
}
int cudaGraphAddChildGraphNode(const void** node, void* graph, const void**, size_t, void* child) {
  return AddNode(node, graph, [copy = GraphOf(child)] { return copy.Run(); });
}
int cudaGraphExecKernelNodeSetParams(void* executable, const void* node, const abi::KernelNode* params) {
  return Replace(executable, node, WorkOf(*params));
}
int cudaGraphExecMemsetNodeSetParams(void* executable, const void* node, const abi::FillNode* params) {
  return Replace(executable, node, WorkOf(*params));
}
int cudaGraphExecMemcpyNodeSetParams(void* executable, const void* node, const abi::Copy3D* params) {
  return Replace(executable, node, WorkOf(*params));
}
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
