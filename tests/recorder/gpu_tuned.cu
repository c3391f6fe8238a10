// Tuned variants of the kernel Scale of gpu_program.cu, which computes the same with half the
// blocks.
__constant__ float offset;

#ifndef WRONG
#define WRONG 0
#endif

__global__ void Scale(float* y, const float* x, float a, int n) {
  const int first = static_cast<int>(blockIdx.x * 2 * blockDim.x + threadIdx.x);
  for (int k = 0; k < 2; ++k) {
    const int i = first + k * static_cast<int>(blockDim.x);
    if (i < n) y[i] = a * x[i] + offset + static_cast<float>(WRONG);
  }
}
