// CUDA samples style: kernels of a stream are recorded into a graph, which is launched several
// times.
#include <cstdio>
#include <vector>

__global__ void damp(float* v, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] *= factor;
}
__global__ void add(float* v, const float* w, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] += w[i];
}

int main() {
  const int n = 10000;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 19;
  float *v, *w;
  cudaMalloc(&v, n * sizeof(float));
  cudaMalloc(&w, n * sizeof(float));
  cudaMemcpy(v, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(w, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int k = 0; k < 3; ++k) {
    damp<<<(n + 255) / 256, 256, 0, stream>>>(v, 0.5f, n);
    add<<<(n + 255) / 256, 256, 0, stream>>>(v, w, n);
  }
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
  for (int k = 0; k < 2; ++k) cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  cudaMemcpy(host.data(), v, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float x : host) sum += x;
  printf("sum %.2f\n", sum);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(v);
  cudaFree(w);
}
