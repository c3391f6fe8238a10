// A CUDA driver, the virtual or the real one, as a test's own program uses it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "atunner/base/cuda_abi.h"

namespace atunner::testing_driver {

class Client {
 public:
  explicit Client(const char* library) : library_(::dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) ADD_FAILURE() << ::dlerror();
    Call<int(unsigned)>("cuInit", 0u);
  }

  /// Why the library cannot be used here; "" if it can.
  static std::string Missing(const char* library) {
    void* const opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return ::dlerror();
    const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(opened, "cuInit"));
    const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(opened, "cuDeviceGetCount"));
    int devices = 0;
    const bool usable = init != nullptr && init(0) == cuda::kSuccess &&
                        count(&devices) == cuda::kSuccess;
    return usable && devices > 0 ? "" : "there is no GPU";
  }

  /// A function of the library by its name; its signature is the caller's to know.
  template <class Signature, class... Args>
  std::invoke_result_t<Signature*, Args...> Call(const char* name, Args... args) const {
    return reinterpret_cast<Signature*>(::dlsym(library_, name))(args...);
  }

  /// Makes the first GPU's primary context current, for as long as the process lives.
  void MakeCurrent() const {
    cuda::Device device = 0;
    cuda::Context context = nullptr;
    EXPECT_EQ(Call<int(cuda::Device*, int)>("cuDeviceGet", &device, 0), 0);
    EXPECT_EQ(Call<int(cuda::Context*, cuda::Device)>("cuDevicePrimaryCtxRetain", &context, device),
              0);
    EXPECT_EQ(Call<int(cuda::Context)>("cuCtxSetCurrent", context), 0);
  }
  /// An attribute of the first GPU.
  int Attribute(int which) const {
    int value = 0;
    EXPECT_EQ(
        Call<int(int*, int, cuda::Device)>("cuDeviceGetAttribute", &value, which, cuda::Device{0}),
        0);
    return value;
  }
  /// A stream that waits for the default one, in which uploads run.
  void* NewStream() const {
    cuda::Stream stream = nullptr;
    EXPECT_EQ(Call<int(cuda::Stream*, unsigned)>("cuStreamCreate", &stream, 0u), 0);
    return stream;
  }
  void Synchronize(void* stream) const {
    EXPECT_EQ(Call<int(cuda::Stream)>("cuStreamSynchronize", static_cast<cuda::Stream>(stream)), 0);
  }

  // The additions of virtual_cuda.h to the driver's interface.
  std::string log() const { return Call<const char*()>("virtual_cuda_log"); }
  void ResetLog() const { Call<void()>("virtual_cuda_reset_log"); }
  void Play(const char* gpu) const {
    ASSERT_EQ(Call<int(const char*)>("virtual_cuda_play", gpu), 0);
  }
  void AcceptCubins(bool accept) const {
    Call<void(int)>("virtual_cuda_accept_cubins", static_cast<int>(accept));
  }
  void FailNext(const char* function, int code) const {
    Call<void(const char*, int)>("virtual_cuda_fail_next", function, code);
  }
  int context_depth() const { return Call<int()>("virtual_cuda_context_depth"); }

  /// New device memory with these values.
  template <class T = float>
  uint64_t Upload(const std::vector<T>& values) const {
    cuda::DevicePointer address = 0;
    const size_t bytes = values.size() * sizeof(T);
    EXPECT_EQ(Call<int(cuda::DevicePointer*, size_t)>("cuMemAlloc_v2", &address, bytes), 0);
    const void* from = values.data();
    EXPECT_EQ(Call<int(cuda::DevicePointer, const void*, size_t)>("cuMemcpyHtoD_v2", address, from,
                                                                  bytes),
              0);
    return address;
  }
  template <class T = float>
  std::vector<T> Download(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    void* to = values.data();
    EXPECT_EQ(Call<int(void*, cuda::DevicePointer, size_t)>(
                  "cuMemcpyDtoH_v2", to, cuda::DevicePointer{address}, count * sizeof(T)),
              0);
    return values;
  }

 private:
  void* library_;
};

}  // namespace atunner::testing_driver
