// Assignment of points to the nearest centre (as Rodinia's kmeans): points by rows.
#include <cuda_runtime.h>
#include <float.h>

__global__ void kmeansPoint(float* features, int nfeatures, int npoints, int nclusters,
                            int* membership, float* clusters) {
  const unsigned int point_id = blockIdx.x * blockDim.x + threadIdx.x;
  int index = -1;
  if (point_id < npoints) {
    float min_dist = FLT_MAX;
    for (int i = 0; i < nclusters; i++) {
      float nearest = 0.0;
      for (int j = 0; j < nfeatures; j++) {
        float diff = features[point_id * nfeatures + j] - clusters[i * nfeatures + j];
        nearest += diff * diff;
      }
      if (nearest < min_dist) {
        min_dist = nearest;
        index = i;
      }
    }
    membership[point_id] = index;
  }
}

int main() {
  int npoints = 65536, nfeatures = 32, nclusters = 16;
  float *features, *clusters;
  int* membership;
  cudaMalloc((void**)&features, npoints * nfeatures * sizeof(float));
  cudaMalloc((void**)&clusters, nclusters * nfeatures * sizeof(float));
  cudaMalloc((void**)&membership, npoints * sizeof(int));
  kmeansPoint<<<npoints / 256, 256>>>(features, nfeatures, npoints, nclusters, membership,
                                      clusters);
  cudaDeviceSynchronize();
  return 0;
}
