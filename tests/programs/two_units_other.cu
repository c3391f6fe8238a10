// The second unit of two_units.cu.
__device__ float weight(int i) { return 1.0f / (1 + i % 8); }

static __global__ void sum_rows(float* out, const float* in, int columns) {
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += in[blockIdx.x * columns + i];
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

void SumRows(float* out, const float* in, int rows, int columns) {
  sum_rows<<<rows, 64>>>(out, in, columns);
}
