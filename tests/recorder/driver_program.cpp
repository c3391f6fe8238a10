// A program that uses CUDA's driver interface, found as CUDA's runtime finds it: without the
// toolkit, by dlopen and cuGetProcAddress. The arguments say what it does, see main.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

// y = a * x + offset for n numbers; counts its blocks.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.const .align 4 .f32 offset;
.global .align 4 .u32 blocks;
.visible .entry _Z5scalePfPKffj(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {
  .reg .pred %p<3>;
  .reg .u32 %r<8>;
  .reg .u64 %d<8>;
  .reg .f32 %f<8>;
  ld.param.u64 %d1, [y];
  ld.param.u64 %d2, [x];
  ld.param.f32 %f1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra counted;
  atom.global.add.u32 %r5, [blocks], 1;
counted:
  mad.lo.u32 %r6, %r2, %r3, %r4;
  setp.ge.u32 %p2, %r6, %r1;
  @%p2 bra done;
  mul.wide.u32 %d3, %r6, 4;
  add.u64 %d4, %d2, %d3;
  add.u64 %d5, %d1, %d3;
  ld.global.f32 %f2, [%d4];
  ld.const.f32 %f3, [offset];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%d5], %f4;
done:
  ret;
})";

using Address = unsigned long long;

struct Cuda {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*get)(const char*, void**, int, uint64_t, int*) = nullptr;
  bool by_name = false;  ///< launches by a function that dlsym finds

  Cuda() {
    if (driver == nullptr) std::exit(9);
    *reinterpret_cast<void**>(&get) = dlsym(driver, "cuGetProcAddress_v2");
  }
  template <class... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    int (*function)(Arguments...) = nullptr;
    int found = 0;
    if (by_name && std::strcmp(name, "cuLaunchKernel") == 0)
      *reinterpret_cast<void**>(&function) = dlsym(driver, name);
    else if (get(name, reinterpret_cast<void**>(&function), 12000, 0, &found) != 0)
      std::exit(8);
    if (const int code = function(arguments...)) {
      std::printf("%s: %d\n", name, code);
      std::exit(7);
    }
  }
};

class Program {
 public:
  explicit Program(unsigned n) : n_(n) {
    cuda_.Call("cuInit", 0u);
    cuda_.Call("cuDevicePrimaryCtxRetain", &context_, 0);
    cuda_.Call("cuCtxSetCurrent", context_);
    cuda_.Call("cuModuleLoadData", &module_, static_cast<const void*>(kPtx));
    cuda_.Call("cuModuleGetFunction", &function_, module_, "_Z5scalePfPKffj");
    Address offset = 0, blocks = 0;
    size_t bytes = 0;
    cuda_.Call("cuModuleGetGlobal", &offset, &bytes, module_, "offset");
    cuda_.Call("cuModuleGetGlobal", &blocks, &bytes, module_, "blocks");
    blocks_ = blocks;
    const float half = 0.5F;
    cuda_.Call("cuMemcpyHtoD", offset, static_cast<const void*>(&half), size_t{4});
    cuda_.Call("cuMemAlloc", &x_, size_t{n_} * 4);
    cuda_.Call("cuMemAlloc", &y_, size_t{n_} * 4);
    std::vector<float> x(n_);
    for (unsigned i = 0; i < n_; ++i) x[i] = static_cast<float>(i % 1000) + 0.25F;
    cuda_.Call("cuMemcpyHtoD", x_, static_cast<const void*>(x.data()), size_t{n_} * 4);
    cuda_.Call("cuMemcpyHtoD", y_, static_cast<const void*>(x.data()), size_t{n_} * 4);
  }

  void Launch(unsigned block, float a, bool packed = false) {
    struct {
      Address y, x;
      float a;
      unsigned n;
    } buffer{y_, x_, a, n_};
    size_t bytes = sizeof buffer;
    void* params[] = {&buffer.y, &buffer.x, &buffer.a, &buffer.n};
    void* extra[] = {Tag(1), &buffer, Tag(2), &bytes, nullptr};
    const unsigned grid = (n_ + block - 1) / block;
    cuda_.Call("cuLaunchKernel", function_, grid, 1u, 1u, block, 1u, 1u, 0u,
               static_cast<void*>(nullptr), packed ? nullptr : static_cast<void**>(params),
               packed ? static_cast<void**>(extra) : nullptr);
  }

  void LaunchByName(unsigned block) {
    cuda_.by_name = true;
    Launch(block, 2);
  }
  /// Launches and allocations of several threads at once.
  void LaunchInThreads(int launches) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        cuda_.Call("cuCtxSetCurrent", context_);
        for (int i = 0; i < launches; ++i) {
          Address own = 0;
          cuda_.Call("cuMemAlloc", &own, size_t{64});
          Launch(64, 2);
          cuda_.Call("cuMemFree", own);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Print() {
    std::vector<float> y(n_);
    unsigned blocks = 0;
    cuda_.Call("cuMemcpyDtoH", static_cast<void*>(y.data()), y_, size_t{n_} * 4);
    cuda_.Call("cuMemcpyDtoH", static_cast<void*>(&blocks), blocks_, size_t{4});
    double sum = 0;
    for (const float value : y) sum += static_cast<double>(value);
    std::printf("sum %.9g, blocks %u\n", sum, blocks);
    std::fflush(stdout);
  }

 private:
  static void* Tag(uintptr_t value) { return reinterpret_cast<void*>(value); }

  Cuda cuda_;
  unsigned n_;
  void *context_ = nullptr, *module_ = nullptr, *function_ = nullptr;
  Address x_ = 0, y_ = 0, blocks_ = 0;
};

}  // namespace

/// LAUNCHES [killed|forks|packed|other|dlsym|threads]: a launch with blocks of 128, and so many
/// with 64.
int main(int argc, char** argv) {
  const int launches = argc > 1 ? std::atoi(argv[1]) : 1;
  const std::string how = argc > 2 ? argv[2] : "";
  if (how == "other" && fork() == 0) {  // another process uses the GPU first
    Program(100).Launch(64, 3);
    std::exit(0);
  }
  if (how == "other") wait(nullptr);
  Program program(1000);
  program.Launch(128, 2);
  if (how == "threads") program.LaunchInThreads(launches);
  if (how == "dlsym") program.LaunchByName(64);
  for (int i = 0; i < launches; ++i) program.Launch(64, 2, how == "packed");
  if (how == "forks") {
    if (fork() == 0) std::exit(0);
    wait(nullptr);
  }
  program.Print();
  if (how == "killed") kill(getpid(), SIGKILL);
  return 0;
}
