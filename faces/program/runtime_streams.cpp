// CUDA's runtime interface: streams and events. Work is done at once, so that a stream only has to
// remember the graph to which it is recorded.
#include <chrono>
#include <cstring>
#include <set>

#include "faces/program/runtime_state.h"

namespace atunner::program {
namespace {

thread_local int last_error = kSuccess;

bool IsDefault(const void* stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

std::set<std::unique_ptr<Stream>>& Streams() {
  static auto* streams = new std::set<std::unique_ptr<Stream>>;
  return *streams;
}

}  // namespace

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Remember(int code) {
  if (code != kSuccess) last_error = code;
  return code;
}
int LastError(bool forget) { return forget ? std::exchange(last_error, kSuccess) : last_error; }

Stream& StreamOf(void* stream) {
  static auto* standard = new Stream;
  return IsDefault(stream) ? *standard : *static_cast<Stream*>(stream);
}

int DoIn(void* stream, Node::Kind kind, Work work) {
  const Lock lock(VirtualDevice::Get().mutex);
  if (const auto& recording = StreamOf(stream).recording) {
    std::vector<const Node*> after;
    if (!recording->nodes.empty()) after.push_back(recording->nodes.back().get());
    recording->Add(kind, std::move(work), std::move(after));
    return kSuccess;
  }
  return Remember(work());
}

}  // namespace atunner::program

using namespace atunner::program;  // a file of C functions

namespace {

/// Returns errors of kernels, which appear where the host waits.
int Wait() {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  return Remember(virtual_device.TakeFault());
}

int MakeStream(void** stream, unsigned flags = 0) {
  static unsigned long long last = 0;
  const Lock lock(VirtualDevice::Get().mutex);
  auto made = std::make_unique<Stream>();
  made->flags = flags;
  made->id = ++last;
  *stream = Streams().insert(std::move(made)).first->get();
  return kSuccess;
}

struct CaptureInfo {
  int status = 0;
  unsigned long long id = 0;
  std::shared_ptr<Graph> graph;
};
CaptureInfo CaptureOf(void* stream) {
  const Lock lock(VirtualDevice::Get().mutex);
  const auto& graph = StreamOf(stream).recording;
  return {graph ? 1 : 0, reinterpret_cast<uintptr_t>(graph.get()), graph};
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
int cudaStreamCreateWithFlags(void** stream, unsigned flags) { return MakeStream(stream, flags); }
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return MakeStream(stream, flags);
}
int cudaStreamDestroy(void* stream) {
  const Lock lock(VirtualDevice::Get().mutex);
  std::erase_if(Streams(), [&](const auto& known) { return known.get() == stream; });
  return kSuccess;
}
int cudaStreamSynchronize(void*) { return Wait(); }
int cudaStreamQuery(void*) { return Wait(); }
int cudaStreamGetFlags(void* stream, unsigned* flags) {
  const Lock lock(VirtualDevice::Get().mutex);
  *flags = StreamOf(stream).flags;
  return kSuccess;
}
int cudaStreamGetId(void* stream, unsigned long long* id) {
  const Lock lock(VirtualDevice::Get().mutex);
  *id = StreamOf(stream).id;
  return kSuccess;
}
int cudaStreamGetDevice(void*, int* device) {
  *device = 0;
  return kSuccess;
}
int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
int cudaStreamSetAttribute(void*, int, const void*) { return kSuccess; }
int cudaStreamGetAttribute(void*, int, void* value) {
  std::memset(value, 0, sizeof abi::LaunchAttribute::value);
  return kSuccess;
}
int cudaStreamCopyAttributes(void*, void*) { return kSuccess; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return DoIn(stream, Node::kHost, WorkOf(abi::HostNode{function, argument}));
}
int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* argument,
                          unsigned) {
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
  const Lock lock(VirtualDevice::Get().mutex);
  *static_cast<Event*>(event) = {StreamOf(stream).recording, Now()};
  return kSuccess;
}
int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
int cudaEventSynchronize(void*) { return Wait(); }
int cudaEventQuery(void*) { return Wait(); }
/// The time that the host took, which says nothing about a GPU.
int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
  *milliseconds = static_cast<float>(
      1e3 * (static_cast<Event*>(end)->seconds - static_cast<Event*>(begin)->seconds));
  return kSuccess;
}
/// A stream that waits for a recorded stream is recorded too.
int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  const Lock lock(VirtualDevice::Get().mutex);
  if (const auto& recording = static_cast<Event*>(event)->recording)
    StreamOf(stream).recording = recording;
  return kSuccess;
}

int cudaStreamBeginCapture(void* stream, int) {
  const Lock lock(VirtualDevice::Get().mutex);
  StreamOf(stream).recording = std::make_shared<Graph>();
  return kSuccess;
}
int cudaStreamEndCapture(void* stream, void** graph) {
  const Lock lock(VirtualDevice::Get().mutex);
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
  const Lock lock(VirtualDevice::Get().mutex);
  *status = StreamOf(stream).recording ? 1 : 0;
  return kSuccess;
}
/// The dependencies are not returned: they are the last recorded node.
int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                const void*** waits, size_t* count) {
  const CaptureInfo info = CaptureOf(stream);
  *status = info.status;
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph ? HandleOf(info.graph) : nullptr;
  if (waits != nullptr) *waits = nullptr;
  if (count != nullptr) *count = 0;
  return kSuccess;
}
int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, void** graph,
                             const void*** waits, const void**, size_t* count) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, waits, count);
}
int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                const void*** waits, const void** edges, size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, waits, edges, count);
}
int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
