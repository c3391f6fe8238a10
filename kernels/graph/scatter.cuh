// Updates listed by the row that they go to. The lists of rows follow each other in memory in no
// fixed order, but each list is sorted, so that results do not depend on timing.

/// Allocates the list of row `row`, whose length is in `cursors`: writes its begin to `begins` and
/// `cursors`. Whole warps call this.
DEVICE void begin_list(long long row, long long rows, int* total, int* begins, int* cursors) {
  const int count = row < rows ? cursors[row] : 0, lane = threadIdx.x % 32;
  const int upto = warp_scan<Sum>(count);
  int base = 0;
  if (lane == 31 && upto > 0) base = atomicAdd(total, upto);
  base = __shfl_sync(0xffffffffu, base, 31);
  if (row < rows) begins[row] = cursors[row] = base + upto - count;
}

/// Sorts the lists of as many rows as the block has threads: lists of up to 32 elements by a warp,
/// which counts for every element how many are less; longer ones by the whole block.
DEVICE void sort_lists(long long first, long long rows, const int* begins, const int* ends,
                       int* list) {
  __shared__ int waiting[1024], waits;
  if (threadIdx.x == 0) waits = 0;
  __syncthreads();
  const long long row = first + threadIdx.x;
  const int count = row < rows ? ends[row] - begins[row] : 0, lane = threadIdx.x % 32;
  if (count > 32) waiting[atomicAdd(&waits, 1)] = threadIdx.x;
  for (unsigned left = __ballot_sync(0xffffffffu, count > 1 && count <= 32); left != 0;
       left &= left - 1) {
    const long long next = row - lane + __ffs(left) - 1;
    const int length = ends[next] - begins[next],
              value = list[begins[next] + min(lane, length - 1)];
    int less = 0;
    for (int i = 0; i < length; ++i) less += __shfl_sync(0xffffffffu, value, i) < value;
    if (lane < length) list[begins[next] + less] = value;
  }
  __syncthreads();
  for (int i = 0; i < waits; ++i) {
    const long long next = first + waiting[i];
    sort_by_block(list + begins[next], ends[next] - begins[next]);
  }
}
