// The pattern of Hopper's matrix products: a producer warp group fills stages of shared memory, two consumer warp groups
// multiply them with wgmma; mbarriers say which stage is full and which is empty. One kernel without mistakes, and one
// for each mistake that people make in it. C[128][64] = A[128][K] · B[64][K], K = 64 · tiles.
// A and B lie in global memory tile by tile, as wgmma reads them: see Layout.

enum Mistake {
  kNone,
  kNoFullWait,        // consumers do not wait for the copy
  kOldPhase,          // consumers do not flip the phase when the stages wrap around
  kNoEmptyWait,       // the producer overwrites what may still be multiplied
  kEarlyRelease,      // consumers give the stage back before the products are over
  kNoWaitGroup,       // the accumulators are read before the products are over
  kNoFence,           // ordinary stores fill the stage, and nobody tells the asynchronous proxy
  kMissingWarp,       // one warp of a consumer group leaves
  kDivergent,         // some lanes do not take part
};

constexpr int kStages = 2;
constexpr int kTileBytes = 64 * 64 * 2;  // 64 rows of 64 elements of 16 bits
constexpr unsigned kStageBytes = 3 * kTileBytes;

struct Shared {
  unsigned char stage[kStages][kStageBytes];  // 128 rows of A, 64 of B
  unsigned long long full[kStages], empty[kStages];
};

__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(void* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count) : "memory");
}
__device__ void arrive(void* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ void arrive_expecting(void* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}
__device__ void wait(void* barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra DONE;\nbra AGAIN;\nDONE:\n}"
      ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
__device__ void copy(void* to, const void* from, unsigned bytes, void* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(address_of(to)), "l"(from), "r"(bytes), "r"(address_of(barrier)) : "memory");
}

// Layout: cores of 8 rows of 16 bytes; the 8 cores of 64 rows lie side by side, then the next 8 elements of k.
__device__ unsigned long long descriptor(const void* tile) {
  return (address_of(tile) & 0x3ffff) >> 4 | (1024ull >> 4) << 16 | (128ull >> 4) << 32;
}

__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14,"
      " %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(add));
}
__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

template <Mistake kMistake>
__device__ void produce(Shared& s, const uint4* a, const uint4* b, int tiles) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  const bool stores = kMistake == kNoFence;
  for (int t = 0; t < tiles; ++t) {
    const int i = t % kStages;
    if (kMistake != kNoEmptyWait) wait(&s.empty[i], (t / kStages & 1) ^ 1);
    const uint4* from_a = a + t * (2 * kTileBytes / 16);
    const uint4* from_b = b + t * (kTileBytes / 16);
    if (stores) {
      uint4* to = (uint4*)s.stage[i];
      for (int k = threadIdx.x; k < 2 * kTileBytes / 16; k += 128) to[k] = from_a[k];
      for (int k = threadIdx.x; k < kTileBytes / 16; k += 128) to[2 * kTileBytes / 16 + k] = from_b[k];
      asm volatile("bar.sync 1, 128;" ::: "memory");
      if (threadIdx.x == 0) arrive(&s.full[i]);
    } else if (threadIdx.x == 0) {
      arrive_expecting(&s.full[i], kStageBytes);
      copy(s.stage[i], from_a, 2 * kTileBytes, &s.full[i]);
      copy(s.stage[i] + 2 * kTileBytes, from_b, kTileBytes, &s.full[i]);
    }
  }
}

template <Mistake kMistake>
__device__ void consume(Shared& s, float* c, int tiles) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int group = threadIdx.x / 128 - 1;
  const int thread = threadIdx.x % 128;
  float d[32];
  if (kMistake == kMissingWarp && thread / 32 == 3) return;
  for (int t = 0; t < tiles; ++t) {
    const int i = t % kStages;
    if (kMistake != kNoFullWait) wait(&s.full[i], kMistake == kOldPhase ? 0 : t / kStages & 1);
    begin_products();
    for (int k = 0; k < 4; ++k) {
      const unsigned long long step = 2048 / 16 * k;
      if (kMistake != kDivergent || thread % 32 != 5)
        multiply(d, descriptor(s.stage[i] + group * kTileBytes) + step, descriptor(s.stage[i] + 2 * kTileBytes) + step,
                 t + k != 0);
    }
    commit_products();
    if (kMistake == kEarlyRelease) {
      if (thread == 0) arrive(&s.empty[i]);
      continue;
    }
    if (kMistake != kNoWaitGroup || t + 1 < tiles) await_products<0>();
    if (thread == 0) arrive(&s.empty[i]);
  }
  if (kMistake == kEarlyRelease) await_products<0>();
  for (int j = 0; j < 32; ++j) {
    const int row = group * 64 + thread / 32 * 16 + thread % 32 / 4 + j / 2 % 2 * 8;
    c[row * 64 + j / 4 * 8 + thread % 4 * 2 + j % 2] = d[j];
  }
  if (kMistake == kNoWaitGroup) await_products<0>();
}

template <Mistake kMistake>
__device__ void pipeline(const uint4* a, const uint4* b, float* c, int tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& s = *(Shared*)memory;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init(&s.full[i], 1);
      init(&s.empty[i], 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 128)
    produce<kMistake>(s, a, b, tiles);
  else
    consume<kMistake>(s, c, tiles);
}

#define KERNEL(name, mistake)                                                                                     \
  extern "C" __global__ void __launch_bounds__(384) name(const uint4* a, const uint4* b, float* c, int tiles) { \
    pipeline<mistake>(a, b, c, tiles);                                                                             \
  }
KERNEL(correct, kNone)
KERNEL(no_full_wait, kNoFullWait)
KERNEL(old_phase, kOldPhase)
KERNEL(no_empty_wait, kNoEmptyWait)
KERNEL(early_release, kEarlyRelease)
KERNEL(no_wait_group, kNoWaitGroup)
KERNEL(no_fence, kNoFence)
KERNEL(missing_warp, kMissingWarp)
KERNEL(divergent, kDivergent)
