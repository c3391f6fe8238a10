// Functions of CUDA's runtime interface that the driver interface uses; runtime_*.cpp define them.
#pragma once

#include <cstddef>
#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
extern "C" {
int cudaDriverGetVersion(int* version);
int cudaGetDeviceCount(int* count);
int cudaGetDevice(int* device);
int cudaDeviceGetAttribute(int* value, int attribute, int device);
int cudaDeviceSynchronize();
int cudaMemGetInfo(size_t* free, size_t* total);
int cudaMalloc(void** pointer, size_t bytes);
int cudaMallocManaged(void** pointer, size_t bytes, unsigned flags);
int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
int cudaMallocHost(void** pointer, size_t bytes);
int cudaFree(void* pointer);
int cudaFreeHost(void* pointer);
int cudaMemcpy(void* to, const void* from, size_t bytes, int direction);
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int direction, void* stream);
int cudaStreamCreate(void** stream);
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* argument);
int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* argument,
                          unsigned flags);
int cudaDeviceGetLimit(size_t* value, int limit);
int cudaDeviceGetPCIBusId(char* text, int bytes, int device);
int cudaDeviceCanAccessPeer(int* can, int device, int peer);
int cudaStreamDestroy(void* stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamQuery(void* stream);
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cudaEventCreateWithFlags(void** event, unsigned flags);
int cudaEventDestroy(void* event);
int cudaEventRecord(void* event, void* stream);
int cudaEventSynchronize(void* event);
int cudaEventQuery(void* event);
int cudaEventElapsedTime(float* milliseconds, void* begin, void* end);
}
// NOLINTEND(readability-identifier-naming)

namespace atunner::program {

/// The function of CUDA's driver interface with this name, without its version suffix; nullptr when
/// it is not implemented.
void* DriverFunction(const char* name);

/// False for a function that exists only to report that it is not implemented. `name` has its
/// version suffix.
bool IsDriverFunctionAnswered(std::string_view name);

}  // namespace atunner::program
