/// Sorts a list by all threads of a block, in whole warps: a bitonic network whose steps all
/// ascend, so that the elements missing up to a power of two count as infinite. Steps of up to 32
/// stay within the 64 elements of a warp.
template <class T>
DEVICE void sort_by_block(T* list, int count) {
  __syncthreads();
  for (int size = 2; size < 2 * count; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      if (size > 64 && step >= 32)
        __syncthreads();
      else
        __syncwarp();
      for (int pair = threadIdx.x; pair < count / 2 + step; pair += blockDim.x) {
        const int i = 2 * pair - (pair & (step - 1)),
                  other = step == size / 2 ? i ^ (size - 1) : i + step;
        if (other >= count) continue;
        const T a = list[i], b = list[other];
        if (b < a) list[i] = b, list[other] = a;
      }
    }
  }
  __syncthreads();
}
