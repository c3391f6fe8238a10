// Rodinia style: sizes and data come from a text file that is named by an argument: k-means with a
// centre's sums by atomics on floats.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void assign(const float* points, const float* centres, int* nearest, int n, int k,
                       int dims) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float best = 1e30f;
  int at = 0;
  for (int c = 0; c < k; ++c) {
    float d = 0;
    for (int j = 0; j < dims; ++j) {
      float x = points[i * dims + j] - centres[c * dims + j];
      d += x * x;
    }
    if (d < best) {
      best = d;
      at = c;
    }
  }
  nearest[i] = at;
}

__global__ void accumulate(const float* points, const int* nearest, float* sums, int* counts,
                           int n, int dims) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int j = 0; j < dims; ++j) atomicAdd(&sums[nearest[i] * dims + j], points[i * dims + j]);
  atomicAdd(&counts[nearest[i]], 1);
}

int main(int argc, char** argv) {
  FILE* file = argc > 1 ? fopen(argv[1], "r") : nullptr;
  if (file == nullptr) {
    fprintf(stderr, "usage: file_input FILE\n");
    return 1;
  }
  int n, dims, k = 5;
  if (fscanf(file, "%d %d", &n, &dims) != 2) return 1;
  std::vector<float> points(n * dims), sums(k * dims);
  for (float& p : points)
    if (fscanf(file, "%f", &p) != 1) return 1;
  fclose(file);
  std::vector<int> counts(k);
  float *d_points, *d_centres, *d_sums;
  int *nearest, *d_counts;
  cudaMalloc(&d_points, points.size() * sizeof(float));
  cudaMalloc(&d_centres, k * dims * sizeof(float));
  cudaMalloc(&d_sums, k * dims * sizeof(float));
  cudaMalloc(&nearest, n * sizeof(int));
  cudaMalloc(&d_counts, k * sizeof(int));
  cudaMemcpy(d_points, points.data(), points.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_centres, points.data(), k * dims * sizeof(float), cudaMemcpyHostToDevice);
  for (int round = 0; round < 2; ++round) {
    cudaMemset(d_sums, 0, k * dims * sizeof(float));
    cudaMemset(d_counts, 0, k * sizeof(int));
    assign<<<(n + 127) / 128, 128>>>(d_points, d_centres, nearest, n, k, dims);
    accumulate<<<(n + 127) / 128, 128>>>(d_points, nearest, d_sums, d_counts, n, dims);
    cudaMemcpy(sums.data(), d_sums, k * dims * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(counts.data(), d_counts, k * sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 0; i < k * dims; ++i) sums[i] /= counts[i / dims] > 0 ? counts[i / dims] : 1;
    cudaMemcpy(d_centres, sums.data(), k * dims * sizeof(float), cudaMemcpyHostToDevice);
  }
  for (int c = 0; c < k; ++c) printf("%d at %.2f\n", counts[c], sums[c * dims]);
  for (void* p : {(void*)d_points, (void*)d_centres, (void*)d_sums, (void*)nearest,
                  (void*)d_counts})
    cudaFree(p);
}
