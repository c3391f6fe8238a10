extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                                                          T* __restrict__ y, float eps, long long rows) {
  const int t = threadIdx.x % THREADS_PER_ROW;
  const int r = threadIdx.x / THREADS_PER_ROW;
  int slot = 0;
  for (long long first = GROUP * ROWS_PER_BLOCK; first < rows; first += GROUPS * ROWS_PER_BLOCK) {
    const bool active = ROWS_PER_BLOCK == 1 || first + r < rows;
    const long long base = (active ? first + r : first) * COLS + OFFSET;  // idle threads repeat a row, so that barriers meet
    extern __shared__ __align__(16) unsigned char dynamic[];
    T* kept = (T*)dynamic + r * PART;
    Vector held[STORAGE == REGISTERS ? CHUNKS : 1];
    // The mean first, then the squares of the deviations: one pass over global memory when the row is kept.
    float sum = 0;
#pragma unroll UNROLL
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      const Vector v = load(x + base + col);
      if (STORAGE == REGISTERS) held[STORAGE == REGISTERS ? c : 0] = v;
      if (STORAGE == SHARED) *(Vector*)(kept + col) = v;
#pragma unroll
      for (int e = 0; e < VEC; ++e) sum += to_float(v.element[e]);
    }
    const float mean = row_reduce<Sum>(sum, r, t, slot ^= 1) * (1.0f / COLS);
    float squares = 0;
#pragma unroll UNROLL
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      const Vector v = STORAGE == REGISTERS ? held[STORAGE == REGISTERS ? c : 0] : STORAGE == SHARED ? *(const Vector*)(kept + col) : load(x + base + col);
#pragma unroll
      for (int e = 0; e < VEC; ++e) squares += (to_float(v.element[e]) - mean) * (to_float(v.element[e]) - mean);
    }
    const float scale = rsqrtf(row_reduce<Sum>(squares, r, t, slot ^= 1) * (1.0f / COLS) + eps);
#pragma unroll UNROLL
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      Vector v = STORAGE == REGISTERS ? held[STORAGE == REGISTERS ? c : 0] : STORAGE == SHARED ? *(const Vector*)(kept + col) : load(x + base + col);
      Vector w, b;
      w.raw = *(const typename Raw<VEC * sizeof(T)>::type*)(weight + OFFSET + col);  // the same for every row: stays in cache
      b.raw = *(const typename Raw<VEC * sizeof(T)>::type*)(bias + OFFSET + col);
#pragma unroll
      for (int e = 0; e < VEC; ++e) {
        v.element[e] = from_float<T>((to_float(v.element[e]) - mean) * scale * to_float(w.element[e]) + to_float(b.element[e]));
      }
      if (active) store(y + base + col, v);
    }
  }
  leave();
}
