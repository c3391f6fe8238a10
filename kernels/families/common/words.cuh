// Macros and functions that all families use.
#define DEVICE __device__ __forceinline__
#define UNROLLED _Pragma("unroll")

/// Neighbouring elements that are moved at once.
template <class E, int COUNT>
struct alignas(COUNT * sizeof(E)) Units {
  E element[COUNT];
};

/// 2^x; results below the normal numbers become zero.
DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// In a kernel that may start before the previous one has ended (STARTS_EARLY, programmatic
/// dependent launch): waits until it has ended and its results are visible.
DEVICE void await_launch_before() {
#ifdef STARTS_EARLY
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

DEVICE unsigned shared_address(const void* shared) {
  return (unsigned)__cvta_generic_to_shared(shared);
}

/// Copies BYTES (4, 8 or 16) aligned bytes from global to shared memory, asynchronously where the
/// hardware can; zeros if not `valid`.
template <int BYTES>
DEVICE void copy_async(unsigned to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                 "r"(valid ? BYTES : 0)
                 : "memory");
#else
  void* const at = __cvta_shared_to_generic(to);
  if (BYTES == 16)
    *(float4*)at = valid ? *(const float4*)from : make_float4(0, 0, 0, 0);
  else
    *(float*)at = valid ? *(const float*)from : 0;
#endif
}
/// The same without `valid`, on hardware that has such copies.
template <int BYTES>
DEVICE void copy_async(unsigned to, const void* from) {
#if __CUDA_ARCH__ >= 800
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES)
                 : "memory");
#endif
}
/// Closes a group of copies; waits until at most PENDING groups of this thread are running.
DEVICE void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int PENDING>
DEVICE void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
