// The functions of CUDA's driver interface that the library puts in front of the real ones. Each
// calls its original, and tells the session what happened.
#include <cstddef>
#include <cstring>
#include <iterator>

#include "atunner/base/files.h"
#include "faces/recorder/interpose.h"
#include "faces/recorder/session.h"

using namespace atunner::recorder;  // a file of C functions
using atunner::capture::LaunchConfiguration;

namespace {

/// The real function behind one of this file.
template <auto function>
void* original = nullptr;

template <auto function, class... Arguments>
int Call(Arguments... arguments) {
  (void)RealDriver();
  const auto real = reinterpret_cast<decltype(function)>(original<function>);
  return real != nullptr ? real(arguments...) : atunner::cuda::kNotSupported;
}

/// The handle by which the functions without `_ptsz` know the default stream of those with it.
Stream PerThread(Stream stream) {
  constexpr uintptr_t kPerThread = 2;  // CU_STREAM_PER_THREAD
  return stream != nullptr ? stream
                           : reinterpret_cast<Stream>(kPerThread);  // NOLINT(*-no-int-to-ptr)
}

/// `code` is what the allocation returned.
int Allocated(int code, const DevicePointer* address, uint64_t bytes) {
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.memory.Add(*address, bytes, false);
  return code;
}
int AllocatedHost(int code, void* const* pointer, uint64_t bytes) {
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.memory.Add(reinterpret_cast<uint64_t>(*pointer), bytes, true);
  return code;
}

/// Before the memory is freed, since another thread may get the same address at once.
void WillFree(uint64_t address) {
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.memory.Remove(address);
}
void WillFree(const void* pointer) { WillFree(reinterpret_cast<uint64_t>(pointer)); }

int Loaded(int code, const Module* module, const void* image) {
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.code.AddModule(*module, image);
  return code;
}
int Loaded(int code, const Library* library, const void* image) {
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.code.AddLibrary(*library, image);
  return code;
}
template <class Handle>
int LoadedFile(int code, const Handle* handle, const char* file) {
  if (code != atunner::cuda::kSuccess) return code;
  const auto bytes = atunner::ReadFile(file);
  return Loaded(code, handle, bytes ? bytes->c_str() : nullptr);
}

void WillUnload(void* handle) {
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.code.Remove(handle);
}

template <class Handle>
int Aliased(int code, const Handle* handle, void* known) {
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.code.AddAlias(*handle, known);
  return code;
}

int WasReset(int code) {
  if (code == atunner::cuda::kSuccess) Session::Get().OnReset();
  return code;
}

int BegunCapture(int code) {
  if (code == atunner::cuda::kSuccess) Session::Get().OnCapture(1);
  return code;
}
int EndedCapture(int code) {
  constexpr int kIllegalState = 401;  // there was none
  if (code != kIllegalState) Session::Get().OnCapture(-1);
  return code;
}

int Instantiated(int code, const GraphExec* exec, Graph graph) {
  if (code == atunner::cuda::kSuccess) Session::Get().OnInstantiate(*exec, graph);
  return code;
}

/// `known_bytes`: of the parameters, which have become longer.
int ChangedKernel(int code, GraphExec exec, GraphNode node, const void* params,
                  size_t known_bytes) {
  if (code != atunner::cuda::kSuccess) return code;
  KernelNodeParams all{};
  std::memcpy(&all, params, known_bytes);
  Session::Get().OnKernelNode(exec, node, all);
  return code;
}
int ChangedOther(int code, GraphExec exec) {
  if (code == atunner::cuda::kSuccess) Session::Get().OnOtherNode(exec);
  return code;
}
int Updated(int code, GraphExec exec, Graph graph) {
  if (code == atunner::cuda::kSuccess) Session::Get().OnGraphUpdate(exec, graph);
  return code;
}

LaunchConfiguration ConfigurationOf(const LaunchConfig& config) {
  LaunchConfiguration configuration{{config.grid_x, config.grid_y, config.grid_z},
                                    {config.block_x, config.block_y, config.block_z},
                                    {},
                                    config.shared_bytes};
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const auto& [id, pad, value] = config.attributes[i];
    if (id == atunner::cuda::kLaunchAttributeClusterDimension)
      configuration.cluster = {value.cluster.x, value.cluster.y, value.cluster.z};
    if (id == atunner::cuda::kLaunchAttributeCooperative)
      configuration.cooperative = value.enabled != 0;
    if (id == atunner::cuda::kLaunchAttributeProgrammatic)
      configuration.programmatic = value.enabled != 0;
  }
  return configuration;
}

template <class Original>
int Launched(const LaunchCall& call, const Original& run) {
  return Session::Get().Launch(call, OriginalLaunch(run));
}

template <class Original>
int LaunchedGraph(GraphExec exec, Stream stream, const Original& run) {
  return Session::Get().LaunchGraph(exec, stream, OriginalLaunch(run));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
extern "C" {

int cuLaunchKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, Stream stream, void** params,
                   void** extra) {
  return Launched({function, {{gx, gy, gz}, {bx, by, bz}, {}, shared}, stream, params, extra}, [&] {
    return Call<&cuLaunchKernel>(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  });
}
int cuLaunchKernel_ptsz(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, Stream stream, void** params,
                        void** extra) {
  const LaunchConfiguration configuration{{gx, gy, gz}, {bx, by, bz}, {}, shared};
  return Launched({function, configuration, PerThread(stream), params, extra}, [&] {
    return Call<&cuLaunchKernel_ptsz>(function, gx, gy, gz, bx, by, bz, shared, stream, params,
                                      extra);
  });
}
int cuLaunchKernelEx(const LaunchConfig* config, Function function, void** params, void** extra) {
  return Launched({function, ConfigurationOf(*config), config->stream, params, extra, config},
                  [&] { return Call<&cuLaunchKernelEx>(config, function, params, extra); });
}
int cuLaunchKernelEx_ptsz(const LaunchConfig* config, Function function, void** params,
                          void** extra) {
  const Stream stream = PerThread(config->stream);
  return Launched({function, ConfigurationOf(*config), stream, params, extra, config},
                  [&] { return Call<&cuLaunchKernelEx_ptsz>(config, function, params, extra); });
}
int cuLaunchCooperativeKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, Stream stream,
                              void** params) {
  const LaunchConfiguration configuration{{gx, gy, gz}, {bx, by, bz}, {}, shared, true};
  return Launched({function, configuration, stream, params}, [&] {
    return Call<&cuLaunchCooperativeKernel>(function, gx, gy, gz, bx, by, bz, shared, stream,
                                            params);
  });
}
int cuLaunchCooperativeKernel_ptsz(Function function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   Stream stream, void** params) {
  const LaunchConfiguration configuration{{gx, gy, gz}, {bx, by, bz}, {}, shared, true};
  return Launched({function, configuration, PerThread(stream), params}, [&] {
    return Call<&cuLaunchCooperativeKernel_ptsz>(function, gx, gy, gz, bx, by, bz, shared, stream,
                                                 params);
  });
}

int cuModuleLoad(Module* module, const char* file) {
  return LoadedFile(Call<&cuModuleLoad>(module, file), module, file);
}
int cuModuleLoadData(Module* module, const void* image) {
  return Loaded(Call<&cuModuleLoadData>(module, image), module, image);
}
int cuModuleLoadDataEx(Module* module, const void* image, unsigned count, int* options,
                       void** values) {
  return Loaded(Call<&cuModuleLoadDataEx>(module, image, count, options, values), module, image);
}
int cuModuleLoadFatBinary(Module* module, const void* image) {
  return Loaded(Call<&cuModuleLoadFatBinary>(module, image), module, image);
}
int cuModuleUnload(Module module) {
  WillUnload(module);
  return Call<&cuModuleUnload>(module);
}
int cuModuleGetFunction(Function* function, Module module, const char* name) {
  const int code = Call<&cuModuleGetFunction>(function, module, name);
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.code.AddFunction(*function, module, name);
  return code;
}
int cuLibraryLoadData(Library* library, const void* image, int* jit, void** jit_values,
                      unsigned jit_count, int* options, void** values, unsigned count) {
  return Loaded(
      Call<&cuLibraryLoadData>(library, image, jit, jit_values, jit_count, options, values, count),
      library, image);
}
int cuLibraryLoadFromFile(Library* library, const char* file, int* jit, void** jit_values,
                          unsigned jit_count, int* options, void** values, unsigned count) {
  return LoadedFile(Call<&cuLibraryLoadFromFile>(library, file, jit, jit_values, jit_count, options,
                                                 values, count),
                    library, file);
}
int cuLibraryUnload(Library library) {
  WillUnload(library);
  return Call<&cuLibraryUnload>(library);
}
int cuLibraryGetKernel(Kernel* kernel, Library library, const char* name) {
  const int code = Call<&cuLibraryGetKernel>(kernel, library, name);
  if (code != atunner::cuda::kSuccess) return code;
  Session& session = Session::Get();
  const Lock lock(session.mutex);
  session.code.AddKernel(*kernel, library, name);
  return code;
}
int cuLibraryGetModule(Module* module, Library library) {
  const int code = Call<&cuLibraryGetModule>(module, library);
  return Aliased(code, module, library);
}
int cuKernelGetFunction(Function* function, Kernel kernel) {
  const int code = Call<&cuKernelGetFunction>(function, kernel);
  return Aliased(code, function, kernel);
}

int cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  const int code = Call<&cuMemAlloc_v2>(address, bytes);
  return Allocated(code, address, bytes);
}
int cuMemAllocPitch_v2(DevicePointer* address, size_t* pitch, size_t width, size_t height,
                       unsigned element) {
  const int code = Call<&cuMemAllocPitch_v2>(address, pitch, width, height, element);
  return Allocated(code, address, code == atunner::cuda::kSuccess ? *pitch * height : 0);
}
int cuMemAllocManaged(DevicePointer* address, size_t bytes, unsigned flags) {
  const int code = Call<&cuMemAllocManaged>(address, bytes, flags);
  return Allocated(code, address, bytes);
}
int cuMemAllocAsync(DevicePointer* address, size_t bytes, Stream stream) {
  const int code = Call<&cuMemAllocAsync>(address, bytes, stream);
  return Allocated(code, address, bytes);
}
int cuMemAllocAsync_ptsz(DevicePointer* address, size_t bytes, Stream stream) {
  const int code = Call<&cuMemAllocAsync_ptsz>(address, bytes, stream);
  return Allocated(code, address, bytes);
}
int cuMemAllocFromPoolAsync(DevicePointer* address, size_t bytes, void* pool, Stream stream) {
  const int code = Call<&cuMemAllocFromPoolAsync>(address, bytes, pool, stream);
  return Allocated(code, address, bytes);
}
int cuMemAllocFromPoolAsync_ptsz(DevicePointer* address, size_t bytes, void* pool, Stream stream) {
  const int code = Call<&cuMemAllocFromPoolAsync_ptsz>(address, bytes, pool, stream);
  return Allocated(code, address, bytes);
}
int cuMemAllocHost_v2(void** pointer, size_t bytes) {
  const int code = Call<&cuMemAllocHost_v2>(pointer, bytes);
  return AllocatedHost(code, pointer, bytes);
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  const int code = Call<&cuMemHostAlloc>(pointer, bytes, flags);
  return AllocatedHost(code, pointer, bytes);
}
int cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return AllocatedHost(Call<&cuMemHostRegister_v2>(pointer, bytes, flags), &pointer, bytes);
}
int cuMemHostUnregister(void* pointer) {
  WillFree(pointer);
  return Call<&cuMemHostUnregister>(pointer);
}
int cuMemFree_v2(DevicePointer address) {
  WillFree(address);
  return Call<&cuMemFree_v2>(address);
}
int cuMemFreeAsync(DevicePointer address, Stream stream) {
  WillFree(address);
  return Call<&cuMemFreeAsync>(address, stream);
}
int cuMemFreeAsync_ptsz(DevicePointer address, Stream stream) {
  WillFree(address);
  return Call<&cuMemFreeAsync_ptsz>(address, stream);
}
int cuMemFreeHost(void* pointer) {
  WillFree(pointer);
  return Call<&cuMemFreeHost>(pointer);
}

int cuDevicePrimaryCtxReset(int device) { return WasReset(Call<&cuDevicePrimaryCtxReset>(device)); }
int cuDevicePrimaryCtxReset_v2(int device) {
  return WasReset(Call<&cuDevicePrimaryCtxReset_v2>(device));
}
int cuCtxDestroy_v2(Context context) { return WasReset(Call<&cuCtxDestroy_v2>(context)); }

int cuStreamBeginCapture(Stream stream) {
  return BegunCapture(Call<&cuStreamBeginCapture>(stream));
}
int cuStreamBeginCapture_ptsz(Stream stream) {
  return BegunCapture(Call<&cuStreamBeginCapture_ptsz>(stream));
}
int cuStreamBeginCapture_v2(Stream stream, int mode) {
  return BegunCapture(Call<&cuStreamBeginCapture_v2>(stream, mode));
}
int cuStreamBeginCapture_v2_ptsz(Stream stream, int mode) {
  return BegunCapture(Call<&cuStreamBeginCapture_v2_ptsz>(stream, mode));
}
int cuStreamBeginCaptureToGraph(Stream stream, Graph graph, const GraphNode* nodes,
                                const void* edges, size_t count, int mode) {
  return BegunCapture(Call<&cuStreamBeginCaptureToGraph>(stream, graph, nodes, edges, count, mode));
}
int cuStreamBeginCaptureToGraph_ptsz(Stream stream, Graph graph, const GraphNode* nodes,
                                     const void* edges, size_t count, int mode) {
  return BegunCapture(
      Call<&cuStreamBeginCaptureToGraph_ptsz>(stream, graph, nodes, edges, count, mode));
}
int cuStreamEndCapture(Stream stream, Graph* graph) {
  return EndedCapture(Call<&cuStreamEndCapture>(stream, graph));
}
int cuStreamEndCapture_ptsz(Stream stream, Graph* graph) {
  return EndedCapture(Call<&cuStreamEndCapture_ptsz>(stream, graph));
}

int cuGraphInstantiate(GraphExec* exec, Graph graph, GraphNode* node, char* log, size_t bytes) {
  return Instantiated(Call<&cuGraphInstantiate>(exec, graph, node, log, bytes), exec, graph);
}
int cuGraphInstantiate_v2(GraphExec* exec, Graph graph, GraphNode* node, char* log, size_t bytes) {
  return Instantiated(Call<&cuGraphInstantiate_v2>(exec, graph, node, log, bytes), exec, graph);
}
int cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long flags) {
  return Instantiated(Call<&cuGraphInstantiateWithFlags>(exec, graph, flags), exec, graph);
}
int cuGraphInstantiateWithParams(GraphExec* exec, Graph graph, void* params) {
  return Instantiated(Call<&cuGraphInstantiateWithParams>(exec, graph, params), exec, graph);
}
int cuGraphInstantiateWithParams_ptsz(GraphExec* exec, Graph graph, void* params) {
  return Instantiated(Call<&cuGraphInstantiateWithParams_ptsz>(exec, graph, params), exec, graph);
}
int cuGraphLaunch(GraphExec exec, Stream stream) {
  return LaunchedGraph(exec, stream, [&] { return Call<&cuGraphLaunch>(exec, stream); });
}
int cuGraphLaunch_ptsz(GraphExec exec, Stream stream) {
  return LaunchedGraph(exec, PerThread(stream),
                       [&] { return Call<&cuGraphLaunch_ptsz>(exec, stream); });
}
int cuGraphExecKernelNodeSetParams(GraphExec exec, GraphNode node, const void* params) {
  return ChangedKernel(Call<&cuGraphExecKernelNodeSetParams>(exec, node, params), exec, node,
                       params, offsetof(KernelNodeParams, kernel));
}
int cuGraphExecKernelNodeSetParams_v2(GraphExec exec, GraphNode node, const void* params) {
  return ChangedKernel(Call<&cuGraphExecKernelNodeSetParams_v2>(exec, node, params), exec, node,
                       params, sizeof(KernelNodeParams));
}
int cuGraphExecUpdate(GraphExec exec, Graph graph, GraphNode* node, int* result) {
  return Updated(Call<&cuGraphExecUpdate>(exec, graph, node, result), exec, graph);
}
int cuGraphExecUpdate_v2(GraphExec exec, Graph graph, void* result) {
  return Updated(Call<&cuGraphExecUpdate_v2>(exec, graph, result), exec, graph);
}
int cuGraphExecMemcpyNodeSetParams(GraphExec exec, GraphNode node, const void* params,
                                   Context context) {
  return ChangedOther(Call<&cuGraphExecMemcpyNodeSetParams>(exec, node, params, context), exec);
}
int cuGraphExecMemsetNodeSetParams(GraphExec exec, GraphNode node, const void* params,
                                   Context context) {
  return ChangedOther(Call<&cuGraphExecMemsetNodeSetParams>(exec, node, params, context), exec);
}
int cuGraphExecHostNodeSetParams(GraphExec exec, GraphNode node, const void* params) {
  return ChangedOther(Call<&cuGraphExecHostNodeSetParams>(exec, node, params), exec);
}
int cuGraphExecChildGraphNodeSetParams(GraphExec exec, GraphNode node, Graph child) {
  return ChangedOther(Call<&cuGraphExecChildGraphNodeSetParams>(exec, node, child), exec);
}
int cuGraphExecEventRecordNodeSetEvent(GraphExec exec, GraphNode node, Event event) {
  return ChangedOther(Call<&cuGraphExecEventRecordNodeSetEvent>(exec, node, event), exec);
}
int cuGraphExecEventWaitNodeSetEvent(GraphExec exec, GraphNode node, Event event) {
  return ChangedOther(Call<&cuGraphExecEventWaitNodeSetEvent>(exec, node, event), exec);
}
int cuGraphExecNodeSetParams(GraphExec exec, GraphNode node, void* params) {
  return ChangedOther(Call<&cuGraphExecNodeSetParams>(exec, node, params), exec);
}
int cuGraphNodeSetEnabled(GraphExec exec, GraphNode node, unsigned enabled) {
  return ChangedOther(Call<&cuGraphNodeSetEnabled>(exec, node, enabled), exec);
}
int cuGraphExecDestroy(GraphExec exec) {
  Session::Get().OnGraphDestroy(exec);
  return Call<&cuGraphExecDestroy>(exec);
}

int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  const int code = Call<&cuGetProcAddress>(name, function, version, flags);
  if (code == atunner::cuda::kSuccess && function != nullptr) *function = InPlaceOf(*function);
  return code;
}
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                        int* status) {
  const int code = Call<&cuGetProcAddress_v2>(name, function, version, flags, status);
  if (code == atunner::cuda::kSuccess && function != nullptr) *function = InPlaceOf(*function);
  return code;
}
}
// NOLINTEND(readability-identifier-naming)

namespace atunner::recorder {
namespace {

#define ATUNNER_INTERCEPTED(name) {#name, reinterpret_cast<void*>(&(name)), &original<&(name)>}
const Intercepted kIntercepted[] = {
    ATUNNER_INTERCEPTED(cuLaunchKernel),
    ATUNNER_INTERCEPTED(cuLaunchKernel_ptsz),
    ATUNNER_INTERCEPTED(cuLaunchKernelEx),
    ATUNNER_INTERCEPTED(cuLaunchKernelEx_ptsz),
    ATUNNER_INTERCEPTED(cuLaunchCooperativeKernel),
    ATUNNER_INTERCEPTED(cuLaunchCooperativeKernel_ptsz),
    ATUNNER_INTERCEPTED(cuModuleLoad),
    ATUNNER_INTERCEPTED(cuModuleLoadData),
    ATUNNER_INTERCEPTED(cuModuleLoadDataEx),
    ATUNNER_INTERCEPTED(cuModuleLoadFatBinary),
    ATUNNER_INTERCEPTED(cuModuleUnload),
    ATUNNER_INTERCEPTED(cuModuleGetFunction),
    ATUNNER_INTERCEPTED(cuLibraryLoadData),
    ATUNNER_INTERCEPTED(cuLibraryLoadFromFile),
    ATUNNER_INTERCEPTED(cuLibraryUnload),
    ATUNNER_INTERCEPTED(cuLibraryGetKernel),
    ATUNNER_INTERCEPTED(cuLibraryGetModule),
    ATUNNER_INTERCEPTED(cuKernelGetFunction),
    ATUNNER_INTERCEPTED(cuMemAlloc_v2),
    ATUNNER_INTERCEPTED(cuMemAllocPitch_v2),
    ATUNNER_INTERCEPTED(cuMemAllocManaged),
    ATUNNER_INTERCEPTED(cuMemAllocAsync),
    ATUNNER_INTERCEPTED(cuMemAllocAsync_ptsz),
    ATUNNER_INTERCEPTED(cuMemAllocFromPoolAsync),
    ATUNNER_INTERCEPTED(cuMemAllocFromPoolAsync_ptsz),
    ATUNNER_INTERCEPTED(cuMemAllocHost_v2),
    ATUNNER_INTERCEPTED(cuMemHostAlloc),
    ATUNNER_INTERCEPTED(cuMemHostRegister_v2),
    ATUNNER_INTERCEPTED(cuMemHostUnregister),
    ATUNNER_INTERCEPTED(cuMemFree_v2),
    ATUNNER_INTERCEPTED(cuMemFreeAsync),
    ATUNNER_INTERCEPTED(cuMemFreeAsync_ptsz),
    ATUNNER_INTERCEPTED(cuMemFreeHost),
    ATUNNER_INTERCEPTED(cuDevicePrimaryCtxReset),
    ATUNNER_INTERCEPTED(cuDevicePrimaryCtxReset_v2),
    ATUNNER_INTERCEPTED(cuCtxDestroy_v2),
    ATUNNER_INTERCEPTED(cuStreamBeginCapture),
    ATUNNER_INTERCEPTED(cuStreamBeginCapture_ptsz),
    ATUNNER_INTERCEPTED(cuStreamBeginCapture_v2),
    ATUNNER_INTERCEPTED(cuStreamBeginCapture_v2_ptsz),
    ATUNNER_INTERCEPTED(cuStreamBeginCaptureToGraph),
    ATUNNER_INTERCEPTED(cuStreamBeginCaptureToGraph_ptsz),
    ATUNNER_INTERCEPTED(cuStreamEndCapture),
    ATUNNER_INTERCEPTED(cuStreamEndCapture_ptsz),
    ATUNNER_INTERCEPTED(cuGraphInstantiate),
    ATUNNER_INTERCEPTED(cuGraphInstantiate_v2),
    ATUNNER_INTERCEPTED(cuGraphInstantiateWithFlags),
    ATUNNER_INTERCEPTED(cuGraphInstantiateWithParams),
    ATUNNER_INTERCEPTED(cuGraphInstantiateWithParams_ptsz),
    ATUNNER_INTERCEPTED(cuGraphLaunch),
    ATUNNER_INTERCEPTED(cuGraphLaunch_ptsz),
    ATUNNER_INTERCEPTED(cuGraphExecKernelNodeSetParams),
    ATUNNER_INTERCEPTED(cuGraphExecKernelNodeSetParams_v2),
    ATUNNER_INTERCEPTED(cuGraphExecUpdate),
    ATUNNER_INTERCEPTED(cuGraphExecUpdate_v2),
    ATUNNER_INTERCEPTED(cuGraphExecMemcpyNodeSetParams),
    ATUNNER_INTERCEPTED(cuGraphExecMemsetNodeSetParams),
    ATUNNER_INTERCEPTED(cuGraphExecHostNodeSetParams),
    ATUNNER_INTERCEPTED(cuGraphExecChildGraphNodeSetParams),
    ATUNNER_INTERCEPTED(cuGraphExecEventRecordNodeSetEvent),
    ATUNNER_INTERCEPTED(cuGraphExecEventWaitNodeSetEvent),
    ATUNNER_INTERCEPTED(cuGraphExecNodeSetParams),
    ATUNNER_INTERCEPTED(cuGraphNodeSetEnabled),
    ATUNNER_INTERCEPTED(cuGraphExecDestroy),
    ATUNNER_INTERCEPTED(cuGetProcAddress),
    ATUNNER_INTERCEPTED(cuGetProcAddress_v2),
};
#undef ATUNNER_INTERCEPTED

}  // namespace

const Intercepted* InterceptedBegin() { return std::begin(kIntercepted); }
const Intercepted* InterceptedEnd() { return std::end(kIntercepted); }

}  // namespace atunner::recorder
