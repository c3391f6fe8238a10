// CUDA's runtime interface: queries of the only device.
#include <algorithm>
#include <cstring>

#include "atunner/model/value/capabilities.h"
#include "faces/program/device_attributes.h"
#include "faces/program/runtime_state.h"

using namespace atunner::program;  // a file of C functions

namespace {
constexpr const char* kBusId = "0000:00:00.0";

template <size_t N>
void Set(int (&to)[N], const int (&from)[N]) {
  std::ranges::copy(from, to);
}
}  // namespace

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cudaGetDeviceCount(int* count) {
  *count = 1;
  return kSuccess;
}
int cudaGetDevice(int* device) {
  *device = 0;
  return kSuccess;
}
int cudaSetDevice(int device) { return device == 0 ? kSuccess : Remember(kInvalidDevice); }
int cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
int cudaSetDeviceFlags(unsigned) { return kSuccess; }
int cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
int cudaSetValidDevices(int*, int) { return kSuccess; }
int cudaChooseDevice(int* device, const void*) { return cudaGetDevice(device); }
int cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}
int cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  *value = DeviceAttribute(VirtualDevice::Get().profile(), attribute);
  return cudaSetDevice(device);
}
int cudaGetDeviceProperties(abi::DeviceProperties* properties, int device) {
  const atunner::DeviceProfile& profile = VirtualDevice::Get().profile();
  *properties = {};
  std::strncpy(properties->name, profile.full_name.c_str(), sizeof properties->name - 1);
  properties->memory_bytes = static_cast<size_t>(profile.dram_bytes);
  properties->shared_per_block = 48 << 10;
  properties->registers_per_block = properties->registers_per_sm = profile.registers_per_sm;
  properties->warp_size = 32;
  properties->pitch = INT32_MAX;
  properties->max_threads = 1024;
  Set(properties->max_block, {1024, 1024, 64});
  Set(properties->max_grid, {INT32_MAX, 65535, 65535});
  properties->constant_bytes = 64 << 10;
  properties->major = profile.cc_major;
  properties->minor = profile.cc_minor;
  properties->texture_alignment = properties->surface_alignment = 512;
  properties->texture_pitch_alignment = 32;
  properties->sms = profile.sms;
  properties->maps_host_memory = 1;
  properties->texture_1d = 131072;
  Set(properties->texture_2d, {131072, 65536});
  Set(properties->texture_2d_linear, {131072, 65000, 2097120});
  Set(properties->texture_3d, {16384, 16384, 16384});
  properties->concurrent_kernels = properties->unified_addressing = properties->managed_memory = 1;
  properties->copy_engines = 2;
  properties->bus_bits = 5120;
  properties->l2_bytes = static_cast<int>(profile.l2_bytes);
  properties->threads_per_sm = 32 * profile.max_warps_per_sm;
  properties->priorities = properties->global_l1 = properties->local_l1 = 1;
  properties->shared_per_sm = static_cast<size_t>(profile.shared_per_sm);
  properties->concurrent_managed_access = properties->preemption = properties->cooperative = 1;
  properties->shared_per_block_optin = static_cast<size_t>(profile.shared_per_block);
  properties->blocks_per_sm = profile.max_blocks_per_sm;
  properties->reserved_shared_per_block = static_cast<size_t>(profile.shared_reserved_per_block);
  properties->clusters = CapabilitiesOf(profile).clusters;
  return cudaSetDevice(device);
}

int cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::strncpy(text, kBusId, static_cast<size_t>(bytes));
  return cudaSetDevice(device);
}
int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return std::strcmp(text, kBusId) == 0 ? cudaGetDevice(device) : Remember(kInvalidDevice);
}
int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
int cudaDeviceSetLimit(int, size_t) { return kSuccess; }
int cudaDeviceGetLimit(size_t* value, int) {
  *value = 8 << 20;
  return kSuccess;
}
int cudaDeviceSetCacheConfig(int) { return kSuccess; }
int cudaDeviceGetCacheConfig(int* config) {
  *config = 0;
  return kSuccess;
}
int cudaDeviceSetSharedMemConfig(int) { return kSuccess; }
int cudaDeviceGetSharedMemConfig(int* config) {
  *config = 1;
  return kSuccess;
}
int cudaCtxResetPersistingL2Cache() { return kSuccess; }
int cudaProfilerStart() { return kSuccess; }
int cudaProfilerStop() { return kSuccess; }
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
