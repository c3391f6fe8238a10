// y = 1.25 x / (1 + |x|) in many styles; every V is right.
#include <cuda_pipeline.h>

__constant__ float scale[2] = {1.25f, 1.0f};
__device__ __noinline__ float direct(float x) { return 1.25f * x / (1.0f + fabsf(x)); }
__device__ __noinline__ float fused(float x) { return x * __fdiv_rn(1.25f, 1.0f + fabsf(x)); }
struct Scaled { float by; template <class T> __device__ T operator()(T x) const { return T(by) * x / (T(1) + (x < 0 ? -x : x)); } };
union Bits { float f; unsigned u; };

extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  const int all = gridDim.x * blockDim.x;
#if V == 0
  if (i < n) y[i] = direct(x[i]);
#elif V == 1  // from the end
  const int j = n - 1 - i;
  if (j >= 0) y[j] = direct(x[j]);
#elif V == 2  // four at a time, the rest by the last threads
  const int quads = n / 4;
  for (int q = i; q < quads; q += all) {
    float4 v = reinterpret_cast<const float4*>(x)[q];
    v.x = direct(v.x), v.y = direct(v.y), v.z = direct(v.z), v.w = direct(v.w);
    reinterpret_cast<float4*>(y)[q] = v;
  }
  if (i < n - 4 * quads) y[4 * quads + i] = direct(x[4 * quads + i]);
#elif V == 3  // a functor in double
  if (i < n) y[i] = (float)Scaled{1.25f}((double)x[i]);
#elif V == 4  // PTX with predicates
  if (i < n) {
    float v = x[i], r;
    asm("{\n.reg .f32 a, b;\nabs.f32 a, %1;\nadd.rn.f32 b, a, 0f3F800000;\nmul.rn.f32 a, %1, 0f3FA00000;\ndiv.rn.f32 %0, a, b;\n}" : "=f"(r) : "f"(v));
    y[i] = r;
  }
#elif V == 5  // constant memory, cache hints
  if (i < n) { const float v = __ldg(x + i); __stcs(y + i, scale[0] * v / (scale[1] + fabsf(v))); }
#elif V == 6  // a pointer to a function
  float (*const functions[2])(float) = {direct, fused};
  if (i < n) y[i] = functions[(t >> 5) & 1](x[i]);
#elif V == 7  // copies with waiting
  __shared__ float staged[256];
  if (i < n) __pipeline_memcpy_async(&staged[t], x + i, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const int other = i - t + (255 - t);
  if (other < n) y[other] = direct(staged[255 - t]);
#elif V == 8  // bits of the sign
  if (i < n) {
    Bits v, m;
    v.f = x[i], m.u = v.u & 0x7fffffffu;
    Bits r;
    r.f = 1.25f * m.f / (1.0f + m.f);
    r.u |= v.u & 0x80000000u;
    y[i] = r.f;
  }
#elif V == 9  // half of the warps load, the other half computes
  __shared__ float staged[128];
  for (int half = 0; half < 2; ++half) {
    const int at = blockIdx.x * 256 + half * 128 + t % 128;
    if (t < 128) { staged[t] = at < n ? x[at] : 0.0f; asm volatile("bar.arrive 1, 256;" ::: "memory"); asm volatile("bar.sync 2, 256;" ::: "memory"); }
    else { asm volatile("bar.sync 1, 256;" ::: "memory"); if (at < n) y[at] = direct(staged[t - 128]); asm volatile("bar.arrive 2, 256;" ::: "memory"); }
  }
#elif V == 10  // Duff's device
  const int first = i * 5, count = min(5, n - first);
  const float* from = x + first;
  float* to = y + first;
  if (count > 0) switch (count) {
    case 5: *to++ = direct(*from++);
    case 4: *to++ = direct(*from++);
    case 3: *to++ = direct(*from++);
    case 2: *to++ = direct(*from++);
    case 1: *to++ = direct(*from++);
  }
#elif V == 11  // one warp exchanges what it loaded
  const float mine = i < n ? x[i] : 0.0f;
  const float got = __shfl_xor_sync(0xffffffffu, mine, 21);
  const int from = i ^ 21;
  if (from < n) y[from] = direct(got);
#elif V == 12  // a local array with an index that is not known
  float v[4];
  for (int j = 0; j < 4; ++j) v[(j + t) & 3] = direct(i < n ? x[i] : 0.0f) + 0.0f * j;
  if (i < n) y[i] = v[t & 3];
#elif V == 13  // Newton's division
  if (i < n) { const float d = 1.0f + fabsf(x[i]), r = __frcp_rn(d), q = 1.25f * x[i] * r; y[i] = d < 1e30f ? __fmaf_rn(__fmaf_rn(-q, d, 1.25f * x[i]), r, q) : 1.25f * x[i] / d; }
#elif V == 14  // blocks share the work by turns of 32
  for (int c = blockIdx.x * 8 + t / 32; c * 32 < n; c += gridDim.x * 8) { const int j = c * 32 + t % 32; if (j < n) y[j] = fused(x[j]); }
#else  // every thread writes its element twice, the same number
  if (i < n) { const float r = direct(x[i]); y[i] = r; __syncwarp(__activemask()); y[i] = r; }
#endif
}
