// Distances of records to one place (as Rodinia's nn): an array of structures.
#include <cuda_runtime.h>

typedef struct latLong {
  float lat;
  float lng;
} LatLong;

__global__ void euclid(LatLong* d_locations, float* d_distances, int numRecords, float lat,
                       float lng) {
  int globalId = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
  LatLong* latLong = d_locations + globalId;
  if (globalId < numRecords) {
    float* dist = d_distances + globalId;
    *dist = (float)sqrt((lat - latLong->lat) * (lat - latLong->lat) +
                        (lng - latLong->lng) * (lng - latLong->lng));
  }
}

int main() {
  int numRecords = 1 << 20;
  LatLong* d_locations;
  float* d_distances;
  cudaMalloc((void**)&d_locations, sizeof(LatLong) * numRecords);
  cudaMalloc((void**)&d_distances, sizeof(float) * numRecords);
  dim3 gridDim(64, 64);
  euclid<<<gridDim, 256>>>(d_locations, d_distances, numRecords, 30.0f, 90.0f);
  cudaDeviceSynchronize();
  return 0;
}
