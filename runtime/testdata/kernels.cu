// Device code of the runtime's tests; kernels.ptx is `nvcc -ptx -arch=compute_80 kernels.cu`.
__constant__ float table[4];

extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

// Two steps with scratch memory between them.
extern "C" __global__ void halve(const float* x, float* scratch, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) scratch[i] = 0.5f * x[i];
}
extern "C" __global__ void add_one(const float* scratch, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scratch[i] + 1.0f;
}

// A tensor that travels in constant memory.
extern "C" __global__ void by_table(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * table[i % 4];
}
