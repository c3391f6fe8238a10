// One calculation for n elements, and WAY says how blocks share it; see imbalance.py. KIND
// says what an element costs: arithmetic, loads, loads at addresses that take long to compute, or
// arithmetic of which every sixteenth chunk has sixteen times as much.
enum Way { kGridStride, kOneBlock, kLastArrival, kEvery64th, kTriangle, kQueue, kLastBlock };
enum Work { kArithmetic, kLoads, kModulo, kUneven };
constexpr int kTerms = 64;

__device__ unsigned arrived, taken, left;

__device__ __forceinline__ float Element(const float* x, int i, int n) {
  float s = x[i];
  if (KIND == kLoads) {
    for (int j = 0; j < kTerms; ++j) s = s * 0.75f + x[(i + j * 33) & (n - 1)];
  } else if (KIND == kModulo) {
    for (int j = 0; j < kTerms; ++j) s = s * 0.75f + x[(i + j * 33) % n];
  } else {
    const int terms = KIND == kUneven && i / 256 % 16 == 0 ? 16 * kTerms : kTerms;
    for (int j = 0; j < terms; ++j) s = s * 0.75f + 0.5f;
  }
  return s;
}

__device__ __forceinline__ void Range(const float* x, float* y, int n, int from, int to) {
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) y[i] = Element(x, i, n);
}

// Blocks take chunks from a counter. The last block to leave resets it for the next launch.
__device__ __forceinline__ void Queue(const float* x, float* y, int n) {
  __shared__ int chunk;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) chunk = atomicAdd(&taken, 1);
    __syncthreads();
    if (chunk >= n / 256) break;
    Range(x, y, n, 256 * chunk, 256 * (chunk + 1));
  }
  __threadfence();
  if (threadIdx.x == 0 && atomicInc(&left, gridDim.x - 1) == gridDim.x - 1) {
    atomicExch(&taken, 0);
  }
}

__device__ __forceinline__ bool IsLastArrival() {
  __shared__ bool last;
  if (threadIdx.x == 0) last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  return last;
}

extern "C" __global__ void imbalance(const float* x, float* y, int n) {
  const int b = blockIdx.x, blocks = gridDim.x;
  if (WAY == kGridStride) {
    for (int i = b * blockDim.x + threadIdx.x; i < n; i += blocks * blockDim.x) {
      y[i] = Element(x, i, n);
    }
  } else if (WAY == kOneBlock) {
    if (b == blocks / 2 + 1) Range(x, y, n, 0, n);
  } else if (WAY == kLastArrival) {
    if (IsLastArrival()) Range(x, y, n, 0, n);
  } else if (WAY == kEvery64th) {
    if (b % 64 == 43) Range(x, y, n, n / blocks * (b / 64 * 64), n / blocks * (b / 64 * 64 + 64));
  } else if (WAY == kTriangle) {
    const long long all = (long long)blocks * blocks, begin = (long long)b * b;
    const long long end = (long long)(b + 1) * (b + 1);
    Range(x, y, n, (int)(begin * n / all), (int)(end * n / all));
  } else if (WAY == kQueue) {
    Queue(x, y, n);
  } else if (b == blocks - 1) {
    Range(x, y, n, n / 2, n);  // as much as all others together
  } else {
    Range(x, y, n, n / 2 / blocks * b, b == blocks - 2 ? n / 2 : n / 2 / blocks * (b + 1));
  }
}
