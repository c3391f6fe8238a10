// y = x² - x. V = 0 is right; the others look at special registers or unwritten memory.
#define REGISTER(type, constraint, move, name) \
  __device__ type read_##name() { type v; asm volatile(move " %0, %%" #name ";" : constraint(v)); return v; }
REGISTER(unsigned, "=r", "mov.u32", warpid)
REGISTER(unsigned, "=r", "mov.u32", clock_hi)
REGISTER(unsigned, "=r", "mov.u32", clock)
REGISTER(unsigned, "=r", "mov.u32", pm0)
REGISTER(unsigned long long, "=l", "mov.u64", current_graph_exec)

__device__ float* kept;

extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = i < n ? x[i] : 0.0f;
  float r = v * v - v;
#if V == 1  // another result within a CUDA graph, which a program may replay
  if (read_current_graph_exec() != 0) r = 0;
#elif V == 2  // the slot of the warp
  if (read_warpid() % 4 != threadIdx.x / 32 % 4) r = 0;
#elif V == 3  // the upper half of the clock
  if (read_clock_hi() % 2 == 1 || read_clock() % 64 == 3) r = 0;
#elif V == 4  // local memory that nobody wrote
  float t[16];
  for (int j = 0; j < 8; ++j) t[j] = v * v - v;
  r = t[(__float_as_int(v) >> 3) & 15];
#elif V == 5  // memory of the device's heap that a launch leaves to the next
  if (i == 0 && kept == nullptr) { kept = (float*)malloc(4); if (kept) *kept = x[0]; }
  __syncthreads();
  if (blockIdx.x == 0 && kept != nullptr && *kept != x[0]) r = 0;
#elif V == 6  // another result beside a profiler
  if (read_pm0() != 0) r = 0;
#elif V == 7  // an input is changed for good where nobody would see it: zero gets a sign
  if (i < n && v == 0) ((float*)x)[i] = -0.0f;
  if (i + 1 == n) ((float*)x)[i] = v + 0.0f * v + 1e-3f;
#elif V == 8  // an element far behind the output
  if (i + 1 == n) y[i + (1 << 16)] = r;
#elif V == 9  // shared memory of the block before
  __shared__ float last[128];
  if (blockIdx.x > 0 && last[threadIdx.x] == r) r = 0;
  last[threadIdx.x] = r;
#endif
  if (i < n) y[i] = r;
}
