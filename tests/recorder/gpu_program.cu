// A program of CUDA's runtime that uses what the recorder has to see: structures with pointers,
// managed and pinned memory, variables, streams, graphs, cooperative and cluster launches. What it
// prints must not depend on who watches. The argument says what it does, see main.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                \
  do {                                                                             \
    if (const cudaError_t code = (call)) {                                         \
      std::printf("%s: %s, line %d\n", #call, cudaGetErrorString(code), __LINE__); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (false)

__constant__ float offset;
__device__ unsigned long long visits;

__global__ void Scale(float* y, const float* x, float a, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = a * x[i] + offset;
}

template <class T>
struct Lists {
  T* to;
  const T* from[2];
  int n;
};
template <class T>
__global__ void Join(Lists<T> lists) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < lists.n;
       i += static_cast<int>(gridDim.x * blockDim.x))
    lists.to[i] = lists.from[0][i] + lists.from[1][i];
}

__global__ void Visit(int* counts, int n) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) atomicAdd(&visits, 1ULL);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) counts[i] += 1;
}

__global__ void Follow(float** rows, int rows_count, int n) {
  for (int row = 0; row < rows_count; ++row) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
      rows[row][i] += static_cast<float>(row);
  }
}

constexpr int kCount = 1 << 16;

struct Memory {
  float *x, *y, *managed, *pinned;
  float* pooled;
  int* counts;
  Memory() {
    CHECK(cudaMalloc(&x, kCount * sizeof(float)));
    CHECK(cudaMalloc(&y, kCount * sizeof(float)));
    CHECK(cudaMallocManaged(&managed, kCount * sizeof(float)));
    CHECK(cudaMallocHost(&pinned, kCount * sizeof(float)));
    CHECK(cudaMallocAsync(&pooled, kCount * sizeof(float), nullptr));
    CHECK(cudaMalloc(&counts, kCount * sizeof(int)));
    CHECK(cudaMemset(counts, 0, kCount * sizeof(int)));
    CHECK(cudaMemset(y, 0, kCount * sizeof(float)));
    CHECK(cudaMemset(pooled, 0, kCount * sizeof(float)));
    std::vector<float> numbers(kCount);
    for (int i = 0; i < kCount; ++i)
      pinned[i] = numbers[i] = managed[i] = static_cast<float>(i % 97);
    CHECK(cudaMemcpy(x, numbers.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
    const float half = 0.5F;
    CHECK(cudaMemcpyToSymbol(offset, &half, sizeof half));
  }
};

template <class T>
void PrintSum(const char* name, const T* at) {
  std::vector<T> values(kCount);
  CHECK(cudaMemcpy(values.data(), at, kCount * sizeof(T), cudaMemcpyDefault));
  double sum = 0;
  for (int i = 0; i < kCount; ++i) sum += static_cast<double>(values[i]) * (i % 13);
  std::printf("%s %.17g\n", name, sum);
}

void PrintAll(const Memory& memory) {
  CHECK(cudaDeviceSynchronize());
  unsigned long long visited = 0;
  CHECK(cudaMemcpyFromSymbol(&visited, visits, sizeof visited));
  PrintSum("y", memory.y);
  PrintSum("managed", memory.managed);
  PrintSum("pinned", memory.pinned);
  PrintSum("pooled", memory.pooled);
  PrintSum("counts", memory.counts);
  std::printf("visits %llu\n", visited);
}

void LaunchKinds(Memory& memory) {
  cudaStream_t first = nullptr, second = nullptr;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&second));
  for (int i = 0; i < 10; ++i)
    Scale<<<kCount / 256, 256, 0, first>>>(memory.y, memory.x, 1.5F + static_cast<float>(i),
                                           kCount);
  CHECK(cudaStreamSynchronize(first));
  Join<<<32, 128, 0, second>>>(Lists<float>{memory.managed, {memory.x, memory.y}, kCount});
  Join<<<32, 128>>>(Lists<float>{memory.pooled, {memory.pinned, memory.y}, kCount});
  Join<<<16, 128>>>(Lists<int>{memory.counts, {memory.counts, memory.counts}, kCount});
  int n = kCount;
  void* params[] = {&memory.counts, &n};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&Visit), dim3(64), dim3(256), params));
  CHECK(cudaDeviceSynchronize());
  float* rows[] = {memory.y, memory.pinned};
  float** device_rows = nullptr;
  CHECK(cudaMalloc(&device_rows, sizeof rows));
  CHECK(cudaMemcpy(device_rows, rows, sizeof rows, cudaMemcpyHostToDevice));
  Follow<<<1, 256>>>(device_rows, 2, kCount);
  CHECK(cudaGetLastError());
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {2, 1, 1};
  config.gridDim = dim3(kCount / 256);
  config.blockDim = dim3(256);
  config.attrs = &cluster;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, Scale, memory.pooled, const_cast<const float*>(memory.y), 0.5F,
                           kCount));
  PrintAll(memory);
}

void LaunchGraphs(Memory& memory) {
  Scale<<<kCount / 256, 256>>>(memory.y, memory.x, 2.0F, kCount);  // one outside of the graph
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph = nullptr, child = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(memory.counts, 0, kCount * sizeof(int), stream));
  Scale<<<kCount / 256, 256, 0, stream>>>(memory.y, memory.x, 3.0F, kCount);
  Join<<<32, 128, 0, stream>>>(Lists<float>{memory.managed, {memory.managed, memory.y}, kCount});
  CHECK(
      cudaMemcpyAsync(memory.pinned, memory.y, kCount * sizeof(float), cudaMemcpyDefault, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaKernelNodeParams node{};
  int n = kCount;
  float a = 4;
  void* params[] = {&memory.pooled, &memory.x, &a, &n};
  node.func = reinterpret_cast<void*>(&Scale);
  node.gridDim = dim3(kCount / 256);
  node.blockDim = dim3(256);
  node.kernelParams = params;
  cudaGraphNode_t added = nullptr, inside = nullptr;
  CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  Follow<<<1, 256, 0, stream>>>(nullptr, 0, kCount);  // writes nothing
  CHECK(cudaStreamEndCapture(stream, &child));
  CHECK(cudaGraphAddChildGraphNode(&inside, graph, &added, 1, child));
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(child));
  for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
  PrintAll(memory);
  for (int i = 0; i < 10; ++i) {
    a = static_cast<float>(i);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, added, &node));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
  }
  CHECK(cudaGraphDestroy(graph));
  PrintAll(memory);
  CHECK(cudaGraphExecDestroy(exec));
}

/// A graph that allocates memory.
void LaunchPools(Memory& memory) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph = nullptr;
  float* buffer = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&buffer, kCount * sizeof(float), stream));
  CHECK(cudaMemcpyAsync(buffer, memory.x, kCount * sizeof(float), cudaMemcpyDefault, stream));
  Scale<<<kCount / 256, 256, 0, stream>>>(memory.y, buffer, 3.0F, kCount);
  CHECK(cudaFreeAsync(buffer, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
  PrintAll(memory);
}

/// So many launches of twenty configurations, as fast as possible.
void LaunchMany(Memory& memory, int launches) {
  Scale<<<kCount / 256, 256>>>(memory.y, memory.x, 2.0F, kCount);
  CHECK(cudaDeviceSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i)
    Scale<<<kCount / 256 + i % 20, 256>>>(memory.y, memory.x, 2.0F, kCount);
  CHECK(cudaDeviceSynchronize());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "seconds %.4f\n", seconds.count());
  PrintAll(memory);
}

/// kinds | graphs | pools | reset | many LAUNCHES
int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "kinds";
  Memory memory;
  if (what == "kinds") LaunchKinds(memory);
  if (what == "graphs") LaunchGraphs(memory);
  if (what == "pools") LaunchPools(memory);
  if (what == "many") LaunchMany(memory, std::atoi(argv[2]));
  if (what == "reset") {
    Scale<<<kCount / 256, 256>>>(memory.y, memory.x, 2.0F, kCount);
    PrintAll(memory);
    CHECK(cudaDeviceReset());
    Memory again;
    Scale<<<kCount / 256, 256>>>(again.y, again.x, 2.0F, kCount);
    PrintAll(again);
  }
  return 0;
}
