// A copy.
extern "C" __global__ void k(const float* x, float* y, int n) {
#if V == 0
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i];
#elif V == 1
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x < 64 && i < n / 4) ((float4*)y)[i] = ((const float4*)x)[i];
#else
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) y[i] = __ldg(x + i);
#endif
}
