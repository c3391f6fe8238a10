// Uses CUDA beyond kernels and copies. Prints "all right" if every result is right. With an
// argument a barrier is left out.
#include <cooperative_groups.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                                     \
  do {                                                                  \
    if (const cudaError_t error = (call); error != cudaSuccess) {       \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      return 1;                                                         \
    }                                                                   \
  } while (false)
#define EXPECT(condition)                                 \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: " #condition "\n", __LINE__); \
      return 1;                                           \
    }                                                     \
  } while (false)

struct Span {
  float* data;
  int size;
};
__constant__ float factor;
__managed__ int counter;
__device__ float table[4] = {1, 2, 3, 4};

template <class F>
__global__ void Apply(Span to, F f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to.size) to.data[i] = f(i) * factor;
  if (i == 0) atomicAdd(&counter, 1);
}

template <bool kBarrier>
__global__ void Reverse(Span span) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = span.data[threadIdx.x];
  if (kBarrier) __syncthreads();
  span.data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void ReadTexture(Span to, cudaTextureObject_t texture, cudaSurfaceObject_t surface) {
  const int i = threadIdx.x;
  to.data[i] = tex2D<float>(texture, i % 8 + 0.5f, i / 8 + 0.5f);
  surf2Dwrite(to.data[i] + 1, surface, (i % 8) * 4, i / 8);
}

__global__ void SumOfGrid(Span from, float* sum) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *sum = 0;
  cooperative_groups::this_grid().sync();
  atomicAdd(sum, from.data[blockIdx.x * blockDim.x + threadIdx.x]);
}

int Textures(Span span) {
  std::vector<float> image(64);
  for (int i = 0; i < 64; ++i) image[i] = static_cast<float>(i * i);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, 8, 8, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), 32, 32, 8, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how{};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  ReadTexture<<<1, 64>>>(span, texture, surface);
  float read[64], written[64];
  CHECK(cudaMemcpy(read, span.data, sizeof read, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy2DFromArray(written, 32, array, 0, 0, 32, 8, cudaMemcpyDeviceToHost));
  EXPECT(read[63] == 3969 && written[63] == 3970);
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  return 0;
}

int Graphs(Span span) {
  cudaStream_t first, second;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(span.data, 0, 64 * sizeof(float), first));
  CHECK(cudaEventRecord(fork, first));
  CHECK(cudaStreamWaitEvent(second, fork));
  const Span half{span.data + 32, 32};
  Apply<<<1, 32, 0, second>>>(half, [] __device__(int i) { return 100.0f + i; });
  CHECK(cudaEventRecord(join, second));
  CHECK(cudaStreamWaitEvent(first, join));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(first, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  counter = 0;
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, first));
  CHECK(cudaStreamSynchronize(first));
  float result[64];
  CHECK(cudaMemcpy(result, span.data, sizeof result, cudaMemcpyDeviceToHost));
  EXPECT(counter == 3 && result[0] == 0 && result[63] == 262);
  return 0;
}

/// An object may be left behind when its memory is gone.
int ForgottenTexture(Span span) {
  float* memory;
  CHECK(cudaMalloc(&memory, 64 << 20));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 64 << 20;
  const cudaTextureDesc how{};
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  CHECK(cudaFree(memory));
  Reverse<true><<<1, 64, 64 * sizeof(float)>>>(span);
  CHECK(cudaDeviceSynchronize());
  return 0;
}

/// Memory of the host's, and of a pool.
int Memories() {
  std::vector<float> values(1000, 2.0f);
  CHECK(cudaHostRegister(values.data() + 3, 64 * sizeof(float), cudaHostRegisterMapped));
  EXPECT(cudaHostRegister(values.data() + 3, 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
  float* device;
  CHECK(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), values.data() + 3, 0));
  Apply<<<1, 64>>>(Span{device, 64}, [] __device__(int i) { return i; });
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[2] == 2 && values[3] == 0 && values[66] == 126 && values[67] == 2);
  CHECK(cudaHostUnregister(values.data() + 3));
  EXPECT(cudaHostUnregister(values.data() + 3) == cudaErrorHostMemoryNotRegistered);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaMallocFromPoolAsync(&device, 64, pool, nullptr));
  CHECK(cudaFreeAsync(device, nullptr));
  CHECK(cudaMemPoolDestroy(pool));
  return 0;
}

/// A graph's steps follow its edges, whatever their order.
int Edges(Span span) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t late, early;
  float value = 0;
  CHECK(cudaGraphAddMemcpyNode1D(&late, graph, nullptr, 0, &value, span.data, sizeof value, cudaMemcpyDeviceToHost));
  cudaMemsetParams fill{};
  fill.dst = span.data;
  fill.elementSize = 4;
  fill.value = 0x40400000;
  fill.width = fill.height = 1;
  CHECK(cudaGraphAddMemsetNode(&early, graph, nullptr, 0, &fill));
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddDependencies(graph, &early, &late, nullptr, 1));
#else
  CHECK(cudaGraphAddDependencies(graph, &early, &late, 1));
#endif
  size_t roots = 0;
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(early, &type));
  EXPECT(roots == 1 && type == cudaGraphNodeTypeMemset);
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(value == 3);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  return 0;
}

int main(int argc, char**) {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.major == 9 && properties.warpSize == 32 && properties.multiProcessorCount > 100);
  EXPECT(properties.cooperativeLaunch && properties.sharedMemPerBlockOptin == 227 << 10);
  const float two = 2;
  CHECK(cudaMemcpyToSymbol(factor, &two, sizeof two));
  float third;
  CHECK(cudaMemcpyFromSymbol(&third, table, sizeof third, 2 * sizeof third));
  EXPECT(third == 3);
  Span span{nullptr, 64};
  CHECK(cudaMalloc(&span.data, 64 * sizeof(float)));
  counter = 5;
  Apply<<<2, 48>>>(span, [third] __device__(int i) { return i + third; });
  if (argc > 1)
    Reverse<false><<<1, 64, 64 * sizeof(float)>>>(span);
  else
    Reverse<true><<<1, 64, 64 * sizeof(float)>>>(span);
  CHECK(cudaDeviceSynchronize());
  EXPECT(counter == 6);
  float* sum;
  CHECK(cudaMallocHost(&sum, sizeof *sum));
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, SumOfGrid, 32, 0));
  EXPECT(blocks > 1);
  void* params[] = {&span, &sum};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&SumOfGrid), dim3(2), dim3(32), params));
  CHECK(cudaDeviceSynchronize());
  EXPECT(*sum == 2 * (63 * 32 + 3 * 64));
  if (Textures(span) != 0 || Graphs(span) != 0 || ForgottenTexture(span) != 0) return 1;
  if (Memories() != 0 || Edges(span) != 0) return 1;
  CHECK(cudaFree(span.data));
  CHECK(cudaFreeHost(sum));
  std::puts("all right");
  return 0;
}
