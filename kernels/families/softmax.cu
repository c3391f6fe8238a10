constexpr float LOG2E = 1.4426950408889634f;

extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, T* __restrict__ y, long long rows) {
  const int t = threadIdx.x % THREADS_PER_ROW;
  const int r = threadIdx.x / THREADS_PER_ROW;
  int slot = 0;
  for (long long first = GROUP * ROWS_PER_BLOCK; first < rows; first += GROUPS * ROWS_PER_BLOCK) {
    const bool active = ROWS_PER_BLOCK == 1 || first + r < rows;
    const long long row = active ? first + r : first;  // idle threads repeat a row, so that barriers meet
    const T* in = x + row * COLS + OFFSET;
    T* out = y + row * COLS + OFFSET;
    if (STORAGE == REGISTERS) {
      // The elements stay as they were loaded; their exponentials are cheaper to take twice than to keep.
      Vector held[CHUNKS];
      float top = -__int_as_float(0x7f800000);
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        const int col = (c * THREADS_PER_ROW + t) * VEC;
        if (inside(col)) held[c] = load(in + col);
      }
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        if (!inside((c * THREADS_PER_ROW + t) * VEC)) continue;
#pragma unroll
        for (int e = 0; e < VEC; ++e) top = Max::of(top, to_float(held[c].element[e]));
      }
      top = row_reduce<Max>(top, r, t, slot ^= 1);
      float total = 0;
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        if (!inside((c * THREADS_PER_ROW + t) * VEC)) continue;
#pragma unroll
        for (int e = 0; e < VEC; ++e) total += exp2f((to_float(held[c].element[e]) - top) * LOG2E);
      }
      const float inverse = 1.0f / row_reduce<Sum>(total, r, t, slot ^= 1);
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        const int col = (c * THREADS_PER_ROW + t) * VEC;
        if (!inside(col)) continue;
        Vector v;
#pragma unroll
        for (int e = 0; e < VEC; ++e) v.element[e] = from_float<T>(exp2f((to_float(held[c].element[e]) - top) * LOG2E) * inverse);
        if (active) store(out + col, v);
      }
    } else {
      // The row is read once into shared memory, or twice from global memory.
      extern __shared__ __align__(16) unsigned char dynamic[];
      T* kept = (T*)dynamic + r * PART;
      float top = -__int_as_float(0x7f800000), total = 0;
#pragma unroll UNROLL
      for (int c = 0; c < CHUNKS; ++c) {
        const int col = (c * THREADS_PER_ROW + t) * VEC;
        if (!inside(col)) continue;
        const Vector v = load(in + col);
        if (STORAGE == SHARED) *(Vector*)(kept + col) = v;
        float best = to_float(v.element[0]);
#pragma unroll
        for (int e = 1; e < VEC; ++e) best = Max::of(best, to_float(v.element[e]));
        const float next = Max::of(top, best);
        float sum = 0;
#pragma unroll
        for (int e = 0; e < VEC; ++e) sum += exp2f((to_float(v.element[e]) - next) * LOG2E);
        total = total * exp2f((top - next) * LOG2E) + sum;
        top = next;
      }
      const float row_top = row_reduce<Max>(top, r, t, slot ^= 1);
      total = top == row_top ? total : total * exp2f((top - row_top) * LOG2E);  // threads without elements: 0 * 0
      const float inverse = 1.0f / row_reduce<Sum>(total, r, t, slot ^= 1);
#pragma unroll UNROLL
      for (int c = 0; c < CHUNKS; ++c) {
        const int col = (c * THREADS_PER_ROW + t) * VEC;
        if (!inside(col)) continue;
        Vector v = STORAGE == SHARED ? *(const Vector*)(kept + col) : load(in + col);
#pragma unroll
        for (int e = 0; e < VEC; ++e) v.element[e] = from_float<T>(exp2f((to_float(v.element[e]) - row_top) * LOG2E) * inverse);
        if (active) store(out + col, v);
      }
    }
  }
  leave();
}
