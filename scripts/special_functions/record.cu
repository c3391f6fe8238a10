// Records what the special functions of a GPU deliver, for fit.cpp and for the conformance files.
//
//     nvcc -O2 -std=c++17 -arch=native record.cu -o record && ./record FOLDER
//
// Writes octave_FORM_START.u32 (the results for 2^23 consecutive arguments), hashes_FORM.u32 (one
// for each block of 2^16 arguments, all 2^32 of them; the header
// atunner/vgpu/conformance/sweep_cases.h defines the
// hash) and halves_FORM.u16 (the results for all 16-bit arguments).
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                               \
  do {                                                                            \
    const cudaError_t error = (call);                                             \
    if (error != cudaSuccess) {                                                   \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

// FORM(name, instruction): of float32.
#define FORMS                             \
  FORM(ex2, "ex2.approx.f32")             \
  FORM(ex2_ftz, "ex2.approx.ftz.f32")     \
  FORM(lg2, "lg2.approx.f32")             \
  FORM(lg2_ftz, "lg2.approx.ftz.f32")     \
  FORM(sin, "sin.approx.f32")             \
  FORM(sin_ftz, "sin.approx.ftz.f32")     \
  FORM(cos, "cos.approx.f32")             \
  FORM(cos_ftz, "cos.approx.ftz.f32")     \
  FORM(rcp, "rcp.approx.f32")             \
  FORM(rcp_ftz, "rcp.approx.ftz.f32")     \
  FORM(rsqrt, "rsqrt.approx.f32")         \
  FORM(rsqrt_ftz, "rsqrt.approx.ftz.f32") \
  FORM(sqrt, "sqrt.approx.f32")           \
  FORM(sqrt_ftz, "sqrt.approx.ftz.f32")   \
  FORM(tanh, "tanh.approx.f32")

#define FORM(name, text)                                \
  struct Form_##name {                                  \
    static constexpr const char* kName = #name;         \
    static __device__ uint32_t Apply(uint32_t a) {      \
      uint32_t d;                                       \
      asm volatile(text " %0, %1;" : "=r"(d) : "r"(a)); \
      return d;                                         \
    }                                                   \
  };
FORMS
#undef FORM

/// rcp and rsqrt .approx.ftz.f64: upper halves of argument and result.
#define UPPER(name, text)                                                         \
  struct Form_##name {                                                            \
    static constexpr const char* kName = #name;                                   \
    static __device__ uint32_t Apply(uint32_t a) {                                \
      double d;                                                                   \
      asm volatile(text " %0, %1;" : "=d"(d) : "d"(__hiloint2double(int(a), 0))); \
      return uint32_t(__double2hiint(d)) | (__double2loint(d) != 0 ? 1u : 0u);    \
    }                                                                             \
  };
UPPER(rcp64, "rcp.approx.ftz.f64")
UPPER(rsqrt64, "rsqrt.approx.ftz.f64")

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
__device__ uint64_t Mix(uint64_t v) {
  v += 0x9e3779b97f4a7c15ull;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
  return v ^ (v >> 31);
}

template <class Form>
__global__ void Octave(uint32_t start, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = Form::Apply(start + i);
}

template <class Form>
__global__ void Hashes(uint32_t* hashes) {
  __shared__ unsigned long long sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  uint64_t own = 0;
  for (uint32_t i = threadIdx.x; i < 65536; i += blockDim.x) {
    const uint32_t a = blockIdx.x << 16 | i;
    own += Mix(a | uint64_t{Form::Apply(a)} << 32);
  }
  atomicAdd(&sum, own);
  __syncthreads();
  if (threadIdx.x == 0) hashes[blockIdx.x] = uint32_t(sum);
}

__global__ void Halves(uint16_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint16_t a = uint16_t(i);
  asm volatile("ex2.approx.f16 %0, %1;" : "=h"(out[i]) : "h"(a));
  asm volatile("tanh.approx.f16 %0, %1;" : "=h"(out[65536 + i]) : "h"(a));
  asm volatile("ex2.approx.ftz.bf16 %0, %1;" : "=h"(out[2 * 65536 + i]) : "h"(a));
  asm volatile("tanh.approx.bf16 %0, %1;" : "=h"(out[3 * 65536 + i]) : "h"(a));
}

std::string g_folder;

template <class T>
void Write(const std::string& name, const T* device, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  FILE* file = std::fopen((g_folder + "/" + name).c_str(), "wb");
  if (file == nullptr || std::fwrite(values.data(), sizeof(T), count, file) != count) {
    std::fprintf(stderr, "cannot write %s\n", name.c_str());
    std::exit(1);
  }
  std::fclose(file);
}

template <class Form>
void RecordHashes() {
  uint32_t* out = nullptr;
  CHECK(cudaMalloc(&out, 4u << 16));
  Hashes<Form><<<65536, 256>>>(out);
  Write(std::string("hashes_") + Form::kName + ".u32", out, 65536);
  CHECK(cudaFree(out));
}

template <class Form>
void RecordOctaves(const std::vector<float>& starts) {
  uint32_t* out = nullptr;
  CHECK(cudaMalloc(&out, 4u << 23));
  for (const float start : starts) {
    uint32_t bits = 0;
    std::memcpy(&bits, &start, 4);
    Octave<Form><<<(1 << 23) / 256, 256>>>(bits, out);
    char name[64];
    std::snprintf(name, sizeof name, "octave_%s_%08x.u32", Form::kName, bits);
    Write(name, out, size_t{1} << 23);
  }
  CHECK(cudaFree(out));
}

int main(int argc, char** argv) {
  g_folder = argc > 1 ? argv[1] : ".";
#define FORM(name, text) RecordHashes<Form_##name>();
  FORMS
#undef FORM
  RecordHashes<Form_rcp64>();
  RecordHashes<Form_rsqrt64>();
  RecordOctaves<Form_rcp_ftz>({1});
  RecordOctaves<Form_rsqrt_ftz>({1, 2});
  RecordOctaves<Form_sqrt_ftz>({1, 2});
  RecordOctaves<Form_ex2_ftz>({1});
  RecordOctaves<Form_lg2_ftz>({1, 2});
  RecordOctaves<Form_sin_ftz>({0x1p-6f, 0.125f, 0.25f, 0.5f, 1, 2, 4, 8192});
  RecordOctaves<Form_tanh>(
      {0x1p-8f, 0x1p-7f, 0x1p-6f, 0x1p-5f, 0x1p-4f, 0.125f, 0.25f, 0.5f, 1, 2, 4});
  uint16_t* halves = nullptr;
  CHECK(cudaMalloc(&halves, 8u << 16));
  Halves<<<256, 256>>>(halves);
  const char* names[] = {"ex2_f16", "tanh_f16", "ex2_bf16", "tanh_bf16"};
  for (int i = 0; i < 4; ++i)
    Write(std::string("halves_") + names[i] + ".u16", halves + (i << 16), 65536);
}
