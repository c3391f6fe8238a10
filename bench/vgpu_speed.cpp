// Measures the speed of the virtual GPU: thread-instructions per second of one core, for kernels of
// five kinds. Each runs with checks off, with all checks on, with counters, and with counters and
// the timeline of a prediction (in the order of the PTX and of the machine code). For tensor
// instructions the multiply-adds per second are printed, too.
//   cmake --build build/dev --target vgpu_speed && build/dev/atunner/vgpu/vgpu_speed [SECONDS PER
//   FIGURE [KERNEL]]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "atunner/compile/machine_code.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/vgpu/engine.h"

namespace {

using namespace atunner;

struct Benchmark {
  const char* name;
  Dim3 grid, block;
  const char* source;  // void k(const float* x, float* y, int n), with 4 Mi elements behind x and y
  const char* arch = "sm_80";
};

constexpr Benchmark kBenchmarks[] = {
    {"softmax", {256, 1, 1}, {256, 1, 1}, R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float part[8];
  const float* row = x + blockIdx.x * 4096;
  float m = -1e30f, s = 0;
  for (int i = threadIdx.x; i < 4096; i += 256) m = fmaxf(m, row[i]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  for (int w = 0; w < 8; ++w) m = fmaxf(m, part[w]);
  __syncthreads();
  for (int i = threadIdx.x; i < 4096; i += 256) s += __expf(row[i] - m);
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < 8; ++w) s += part[w];
  for (int i = threadIdx.x; i < 4096; i += 256) y[blockIdx.x * 4096 + i] = __expf(row[i] - m) / s;
})"},
    {"sgemm", {8, 8, 1}, {256, 1, 1}, R"(
extern "C" __global__ void k(const float* a, float* c, int n) {
  __shared__ float sa[8][128], sb[8][128];
  const float* b = a + (1 << 20);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float acc[8][8] = {};
  for (int k0 = 0; k0 < 256; k0 += 8) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      sa[i % 8][i / 8] = a[(blockIdx.y * 128 + i / 8) * 1024 + k0 + i % 8];
      sb[i / 128][i % 128] = b[(k0 + i / 128) * 1024 + blockIdx.x * 128 + i % 128];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float u[8], v[8];
      for (int i = 0; i < 8; ++i) u[i] = sa[k][ty * 8 + i], v[i] = sb[k][tx * 8 + i];
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) acc[i][j] += u[i] * v[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[(blockIdx.y * 128 + ty * 8 + i) * 1024 + blockIdx.x * 128 + tx * 8 + j] = acc[i][j];
})"},
    {"divergent", {256, 1, 1}, {256, 1, 1}, R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  int steps = 0;
#pragma unroll 1
  for (int k = 0; k < (i % 61) * 8; ++k) {
    if (v > 0.5f) v = v * 0.75f - 0.25f; else v = v * v + 0.3f;
    ++steps;
  }
  y[i] = v + steps;
})"},
    {"stencil", {256, 4, 1}, {256, 1, 1}, R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int c = 1 + (blockIdx.x % 4) * 256 + threadIdx.x;
  for (int r = 1 + blockIdx.y * 256; r < 255 + blockIdx.y * 256; ++r) {
    const float* p = x + r * 2048 + c;
    y[r * 2048 + c] = 0.2f * (p[0] + p[1] + p[-1] + p[2048] + p[-2048]);
  }
})"},
    {"tensor core", {64, 1, 1}, {128, 1, 1}, R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  float c[4] = {0, 0, 0, 0};
  unsigned a = __float_as_uint(x[threadIdx.x]), b = __float_as_uint(x[threadIdx.x + 128]);
#pragma unroll 4
  for (int i = 0; i < 256; ++i)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a & 0x3fff3fff), "r"(b & 0x3fff3fff));
  y[blockIdx.x * 128 + threadIdx.x] = c[0] + c[1] + c[2] + c[3];
})"},
    {"warp group",
     {16, 1, 1},
     {128, 1, 1},
     R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  // 64 rows of A and 128 of B, 64 elements of 16 bits each, swizzled
  __shared__ __align__(1024) float tile[3 * 2048];
  float c[64] = {};
  const unsigned long long at = ((unsigned)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4 | 64ull << 32 | 1ull << 62;
  for (int j = threadIdx.x; j < 3 * 2048; j += 128) tile[j] = __uint_as_float(__float_as_uint(x[j]) & 0x3fff3fff);
  asm volatile("fence.proxy.async;\nbar.sync 0;" ::: "memory");
  for (int i = 0; i < 64; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int s = 0; s < 4; ++s)
      asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
                   : "l"(at + 2 * s), "l"(at + 512 + 2 * s));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += c[i];
  y[blockIdx.x * 128 + threadIdx.x] = sum;
})",
     "sm_90a"},
};

/// The module and data of a benchmark. The checks of global memory need memory that records which
/// bytes were written.
struct Loaded {
  Loaded(const CompiledModule& module, bool track) {
    if (track) memory.Track();
    program = vgpu::LoadProgram(ptx::Parse(module.ptx).value(), memory).value();
    const uint64_t x = memory.Allocate(uint64_t{4} << 22).value();
    const uint64_t y = memory.Allocate(uint64_t{4} << 22).value();
    for (uint64_t i = 0; i < uint64_t{1} << 22; ++i) {
      const float v = static_cast<float>(i % 1009) / 1009.0f;
      std::memcpy(reinterpret_cast<void*>(x + 4 * i), &v, 4);
    }
    memory.MarkDefined(x, uint64_t{4} << 22);
    std::memcpy(params.data(), &x, 8);
    std::memcpy(params.data() + 8, &y, 8);
  }
  vgpu::Memory memory{uint64_t{1} << 32};
  std::unique_ptr<vgpu::Program> program;
  std::vector<std::byte> params = std::vector<std::byte>(20);
};

/// Rates per second of one core, in units of 10^9. Negative if the run failed; the reason is
/// printed.
struct Rates {
  double instructions = -1;
  double multiply_adds = -1;  ///< by tensor instructions
};

Rates Speed(const Loaded& loaded, const Benchmark& benchmark, vgpu::ExecOptions options,
            double seconds) {
  options.threads = 1;
  options.deadline_seconds = 600;
  double instructions = 0;
  double flops = 0;
  const auto cpu_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const double start = cpu_seconds();
  double now = start;
  while (now - start < seconds) {
    const vgpu::ExecResult result = loaded.program->Run(
        "k", {benchmark.grid, benchmark.block, {1, 1, 1}, 0}, loaded.params, options);
    if (!result.outcome.completed()) {
      std::printf("%s: %s\n", benchmark.name, result.outcome.message.c_str());
      return {};
    }
    instructions += static_cast<double>(result.counts.TotalThreadInstructions());
    flops += result.counts.tensor.flops;
    now = cpu_seconds();
  }
  return {instructions / (now - start) * 1e-9, flops / 2 / (now - start) * 1e-9};
}

int Run(double seconds, const std::string& only) {
  auto compiler = MakeNvrtcCompiler();
  if (!compiler) {
    std::puts(compiler.error().ToString().c_str());
    return 1;
  }
  std::puts(
      "G thread-instructions per second and core\n"
      "kernel        no checks  all checks  counting  timeline  of machine code");
  for (const Benchmark& benchmark : kBenchmarks) {
    if (!only.empty() && only != benchmark.name) continue;
    CompileRequest request;
    request.source.text = benchmark.source;
    request.entries = {"k"};
    request.arch = benchmark.arch;
    const CompileOutcome outcome = (*compiler)->Compile(request).value();
    if (!outcome.ok()) {
      std::puts(outcome.error.c_str());
      return 1;
    }
    vgpu::ExecOptions plain;
    plain.check_hazards = false;
    vgpu::ExecOptions counting = plain;
    counting.count = true;
    vgpu::ExecOptions checking;
    checking.check_global = true;
    vgpu::ExecOptions timing = counting;
    timing.timeline = true;
    const auto machine_code = ReadMachineCode(outcome.module->cubin, "k", benchmark.arch);
    vgpu::ExecOptions predicting = timing;
    if (machine_code) predicting.machine_code = &*machine_code;
    const Loaded untracked(*outcome.module, false);
    const Loaded tracked(*outcome.module, true);
    const Rates rates[] = {Speed(untracked, benchmark, plain, seconds),
                           Speed(tracked, benchmark, checking, seconds),
                           Speed(untracked, benchmark, counting, seconds),
                           Speed(untracked, benchmark, timing, seconds),
                           Speed(untracked, benchmark, predicting, seconds)};
    std::printf("%-12s  %9.2f  %10.2f  %8.2f  %8.2f  %15.2f", benchmark.name, rates[0].instructions,
                rates[1].instructions, rates[2].instructions, rates[3].instructions,
                rates[4].instructions);
    if (rates[0].multiply_adds > 0)
      std::printf("   %.1f, %.1f and %.1f multiply-adds", rates[0].multiply_adds,
                  rates[1].multiply_adds, rates[2].multiply_adds);
    std::puts("");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return Run(argc > 1 ? std::atof(argv[1]) : 1.0, argc > 2 ? argv[2] : "");
}
