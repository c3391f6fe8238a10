// CUDA samples style: chunks of pinned memory are copied and computed in several streams, with
// events around them.
#include <cstdio>

__global__ void black_scholes(float* call, const float* price, const float* strike, float rate,
                              int offset, int n) {
  int i = offset + blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = price[i], x = strike[i];
  float d1 = (logf(s / x) + (rate + 0.045f)) / 0.3f, d2 = d1 - 0.3f;
  call[i] = s * normcdff(d1) - x * expf(-rate) * normcdff(d2);
}

int main() {
  const int n = 1 << 14, streams = 4, chunk = n / streams;
  float *price, *strike, *call, *d_price, *d_strike, *d_call;
  cudaMallocHost(&price, n * sizeof(float));
  cudaMallocHost(&strike, n * sizeof(float));
  cudaMallocHost(&call, n * sizeof(float));
  for (int i = 0; i < n; ++i) {
    price[i] = 50 + i % 50;
    strike[i] = 40 + i % 70;
  }
  cudaMalloc(&d_price, n * sizeof(float));
  cudaMalloc(&d_strike, n * sizeof(float));
  cudaMalloc(&d_call, n * sizeof(float));
  cudaStream_t stream[streams];
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start);
  for (int s = 0; s < streams; ++s) {
    cudaStreamCreate(&stream[s]);
    int o = s * chunk;
    size_t bytes = chunk * sizeof(float);
    cudaMemcpyAsync(d_price + o, price + o, bytes, cudaMemcpyHostToDevice, stream[s]);
    cudaMemcpyAsync(d_strike + o, strike + o, bytes, cudaMemcpyHostToDevice, stream[s]);
    black_scholes<<<chunk / 256, 256, 0, stream[s]>>>(d_call, d_price, d_strike, 0.02f, o, n);
    cudaMemcpyAsync(call + o, d_call + o, bytes, cudaMemcpyDeviceToHost, stream[s]);
  }
  cudaEventRecord(stop);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += call[i];
  printf("sum %.1f\n", sum);
  for (cudaStream_t s : stream) cudaStreamDestroy(s);
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  for (float* p : {price, strike, call}) cudaFreeHost(p);
  for (float* p : {d_price, d_strike, d_call}) cudaFree(p);
}
