#include "faces/recorder/testing/fake_driver.h"

#include <cstring>

namespace atunner::recorder {
namespace {

/// The text around an address, and the offset in it.
std::pair<std::string*, size_t> Around(DevicePointer address) {
  for (auto& [base, contents] : Fake().memory) {
    if (address >= base && address < base + contents.size()) return {&contents, address - base};
  }
  return {nullptr, 0};
}

void FillMemory(Driver& driver) {
  driver.cuCtxSynchronize = [] {
    ++Fake().waits;
    return 0;
  };
  driver.cuMemcpyDtoH_v2 = [](void* to, DevicePointer from, size_t bytes) {
    const auto [contents, at] = Around(from);
    if (contents == nullptr || Fake().copy_result != 0) return Fake().copy_result | 1;
    std::memcpy(to, contents->data() + at, bytes);
    return 0;
  };
  driver.cuMemcpyHtoD_v2 = [](DevicePointer to, const void* from, size_t bytes) {
    const auto [contents, at] = Around(to);
    if (contents == nullptr) return 1;
    std::memcpy(contents->data() + at, from, bytes);
    Fake().written.push_back(to);
    return 0;
  };
  driver.cuMemGetAddressRange_v2 = [](DevicePointer* base, size_t* bytes, DevicePointer address) {
    const auto [contents, at] = Around(address);
    if (contents == nullptr) return 1;
    *base = address - at;
    *bytes = contents->size();
    return 0;
  };
}

void FillCode(Driver& driver) {
  driver.cuCtxGetDevice = [](int* device) { return *device = 0; };
  driver.cuDeviceGetAttribute = [](int* value, int attribute, int) {
    *value = attribute == kComputeCapabilityMajor ? 9 : 0;
    return 0;
  };
  driver.cuFuncGetName = [](const char** name, Function function) {
    const auto found = Fake().function_names.find(function);
    if (found == Fake().function_names.end()) return cuda::kInvalidHandle;
    *name = found->second.c_str();
    return 0;
  };
  driver.cuFuncGetModule = [](Module* module, Function function) {
    *module = Fake().function_modules[function];
    return 0;
  };
  driver.cuFuncGetParamInfo = [](Function, size_t i, size_t* offset, size_t* bytes) {
    const auto& all = Fake().parameter_bytes;
    if (all.empty()) return cuda::kNotSupported;
    if (i >= all.size()) return cuda::kInvalidValue;
    *offset = i * sizeof(uint64_t);
    *bytes = all[i];
    return 0;
  };
  driver.cuKernelGetFunction = [](Function* function, Kernel kernel) {
    *function = HandleOf<Function>(reinterpret_cast<uintptr_t>(kernel) + 1);
    return 0;
  };
}

void FillEvents(Driver& driver) {
  driver.cuEventCreate = [](Event* event, unsigned) {
    *event = HandleOf<Event>(1);
    return 0;
  };
  driver.cuEventRecord = [](Event, Stream) { return 0; };
  driver.cuEventQuery = [](Event) { return Fake().events_ended ? 0 : 600; };
  driver.cuEventElapsedTime = [](float* milliseconds, Event, Event) {
    *milliseconds = Fake().milliseconds;
    return 0;
  };
}

}  // namespace

FakeState& Fake() {
  static FakeState state;
  return state;
}

Driver FakeDriver() {
  Fake() = {};
  Driver driver;
  FillMemory(driver);
  FillCode(driver);
  FillEvents(driver);
  return driver;
}

}  // namespace atunner::recorder
