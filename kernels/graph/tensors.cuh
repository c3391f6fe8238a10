// Multi-tensor apply: one launch whose blocks are divided among many tensors.
constexpr long long TILE = (long long)VEC * ITEMS * BLOCK;

/// The tensor that a block works on: tensor i has the blocks from first[i] on.
DEVICE int tensor_of(const int* first, int tensors, int block) {
  int low = 0, high = tensors;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (first[middle] <= block ? low : high) = middle;
  }
  return low;
}

/// Combines the values of THREADS threads, always in the same order; the first thread has the
/// result.
template <class Op, int THREADS, class T>
DEVICE T block_reduce(T value, T neutral) {
  __shared__ T parts[THREADS / 32];
  T values[1] = {value};
  warp_reduce<Op, 32>(values);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = values[0];
  __syncthreads();
  values[0] = threadIdx.x < THREADS / 32 ? parts[threadIdx.x] : neutral;
  if (threadIdx.x < 32) warp_reduce<Op, 32>(values);
  __syncthreads();
  return values[0];
}

/// Computes sums[i] of tensor i from the partial sums of its blocks, 8 bytes apart. One warp per
/// tensor.
template <class Op, class T>
DEVICE void join_parts(T* sums, T neutral, const unsigned char* parts, const int* first,
                       int tensors) {
  for (int tensor = threadIdx.x / 32; tensor < tensors; tensor += blockDim.x / 32) {
    T total[1] = {neutral};
    for (int block = first[tensor] + threadIdx.x % 32; block < first[tensor + 1]; block += 32)
      total[0] = Op::of(total[0], *(const T*)(parts + 8ll * block));
    warp_reduce<Op, 32>(total);
    if (threadIdx.x % 32 == 0) sums[tensor] = total[0];
  }
}
