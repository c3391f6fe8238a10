// Batched products as in BLAS libraries: tables of pointers to matrices lie in device memory.
#include <cstdio>
#include <vector>

__global__ void batched_gemv(const float* const* matrices, const float* const* vectors,
                             float* const* results, int n) {
  const float* m = matrices[blockIdx.x];
  const float* v = vectors[blockIdx.x];
  for (int row = threadIdx.x; row < n; row += blockDim.x) {
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += m[row * n + j] * v[j];
    results[blockIdx.x][row] = sum;
  }
}

int main() {
  const int batch = 12, n = 64;
  std::vector<float*> matrices(batch), vectors(batch), results(batch);
  std::vector<float> host(n * n);
  for (int b = 0; b < batch; ++b) {
    for (int i = 0; i < n * n; ++i) host[i] = ((i + b) % 9) * 0.5f;
    cudaMalloc(&matrices[b], n * n * sizeof(float));
    cudaMalloc(&vectors[b], n * sizeof(float));
    cudaMalloc(&results[b], n * sizeof(float));
    cudaMemcpy(matrices[b], host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(vectors[b], host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  }
  float **d_matrices, **d_vectors, **d_results;
  cudaMalloc(&d_matrices, batch * sizeof(float*));
  cudaMalloc(&d_vectors, batch * sizeof(float*));
  cudaMalloc(&d_results, batch * sizeof(float*));
  cudaMemcpy(d_matrices, matrices.data(), batch * sizeof(float*), cudaMemcpyHostToDevice);
  cudaMemcpy(d_vectors, vectors.data(), batch * sizeof(float*), cudaMemcpyHostToDevice);
  cudaMemcpy(d_results, results.data(), batch * sizeof(float*), cudaMemcpyHostToDevice);
  batched_gemv<<<batch, 64>>>(d_matrices, d_vectors, d_results, n);
  double sum = 0;
  for (int b = 0; b < batch; ++b) {
    cudaMemcpy(host.data(), results[b], n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) sum += host[i] * (b + 1);
    cudaFree(matrices[b]);
    cudaFree(vectors[b]);
    cudaFree(results[b]);
  }
  printf("sum %.2f\n", sum);
  cudaFree(d_matrices);
  cudaFree(d_vectors);
  cudaFree(d_results);
}
