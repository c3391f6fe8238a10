#include "faces/memory/driver.h"

#include <dlfcn.h>

namespace atunner::memory {
namespace {

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const Driver* Load() {
  static Driver driver;
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return nullptr;
  const bool found = Find(cuda, "cuInit", driver.init) &&
                     Find(cuda, "cuDevicePrimaryCtxRetain", driver.retain_context) &&
                     Find(cuda, "cuCtxPushCurrent_v2", driver.push_context) &&
                     Find(cuda, "cuCtxPopCurrent_v2", driver.pop_context) &&
                     Find(cuda, "cuCtxSynchronize", driver.synchronize) &&
                     Find(cuda, "cuMemGetInfo_v2", driver.memory_info) &&
                     Find(cuda, "cuMemAddressReserve", driver.reserve) &&
                     Find(cuda, "cuMemCreate", driver.create) &&
                     Find(cuda, "cuMemRelease", driver.release) &&
                     Find(cuda, "cuMemMap", driver.map) && Find(cuda, "cuMemUnmap", driver.unmap) &&
                     Find(cuda, "cuMemSetAccess", driver.set_access) &&
                     Find(cuda, "cuEventCreate", driver.create_event) &&
                     Find(cuda, "cuEventDestroy_v2", driver.destroy_event) &&
                     Find(cuda, "cuEventRecord", driver.record) &&
                     Find(cuda, "cuStreamWaitEvent", driver.wait);
  return found ? &driver : nullptr;
}

}  // namespace

const Driver* LoadedDriver() {
  static const Driver* const driver = Load();
  return driver;
}

}  // namespace atunner::memory
