extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx, long long rows) {
  const int t = threadIdx.x % THREADS_PER_ROW;
  const int r = threadIdx.x / THREADS_PER_ROW;
  int slot = 0;
  for (long long first = GROUP * ROWS_PER_BLOCK; first < rows; first += GROUPS * ROWS_PER_BLOCK) {
    const bool active = ROWS_PER_BLOCK == 1 || first + r < rows;
    const long long base = (active ? first + r : first) * COLS + OFFSET;  // idle threads repeat a row, so that barriers meet
    extern __shared__ __align__(16) unsigned char dynamic[];
    T* kept = (T*)dynamic + r * 2 * PART;
    Vector a[STORAGE == REGISTERS ? CHUNKS : 1], b[STORAGE == REGISTERS ? CHUNKS : 1];
    float dot = 0;
#pragma unroll UNROLL
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      const Vector u = load(y + base + col);
      const Vector v = load(dy + base + col);
      if (STORAGE == REGISTERS) {
        a[STORAGE == REGISTERS ? c : 0] = u;
        b[STORAGE == REGISTERS ? c : 0] = v;
      } else if (STORAGE == SHARED) {
        *(Vector*)(kept + col) = u;
        *(Vector*)(kept + PART + col) = v;
      }
#pragma unroll
      for (int e = 0; e < VEC; ++e) dot += to_float(u.element[e]) * to_float(v.element[e]);
    }
    dot = row_reduce<Sum>(dot, r, t, slot ^= 1);
#pragma unroll UNROLL
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      Vector u = STORAGE == REGISTERS ? a[STORAGE == REGISTERS ? c : 0] : STORAGE == SHARED ? *(const Vector*)(kept + col) : load(y + base + col);
      const Vector v = STORAGE == REGISTERS ? b[STORAGE == REGISTERS ? c : 0] : STORAGE == SHARED ? *(const Vector*)(kept + PART + col) : load(dy + base + col);
#pragma unroll
      for (int e = 0; e < VEC; ++e) u.element[e] = from_float<T>(to_float(u.element[e]) * (to_float(v.element[e]) - dot));
      if (active) store(dx + base + col, u);
    }
  }
  leave();
}
