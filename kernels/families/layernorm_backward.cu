// One persistent pass gives dx and each block's share of dweight and dbias; a second kernel adds the shares in a fixed order,
// so that the result does not depend on timing.
extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, const T* __restrict__ dy, const T* __restrict__ weight,
                                                          T* __restrict__ dx, float* __restrict__ shares, float eps, long long rows) {
  const int t = threadIdx.x % THREADS_PER_ROW;
  const int r = threadIdx.x / THREADS_PER_ROW;
  int slot = 0;
  float dw[CHUNKS * VEC], db[CHUNKS * VEC];
#pragma unroll
  for (int i = 0; i < CHUNKS * VEC; ++i) dw[i] = db[i] = 0;
  Vector a[CHUNKS], g[CHUNKS], next_a[CHUNKS], next_g[CHUNKS];
  const auto fetch = [&](long long first, Vector (&to_a)[CHUNKS], Vector (&to_g)[CHUNKS]) {
    const long long base = (ROWS_PER_BLOCK == 1 || first + r < rows ? first + r : first) * COLS + OFFSET;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      to_a[c] = load(x + base + col);
      to_g[c] = load(dy + base + col);
    }
  };
  if (PREFETCH && GROUP * ROWS_PER_BLOCK < rows) fetch(GROUP * ROWS_PER_BLOCK, next_a, next_g);
  for (long long first = GROUP * ROWS_PER_BLOCK; first < rows; first += GROUPS * ROWS_PER_BLOCK) {
    const bool active = ROWS_PER_BLOCK == 1 || first + r < rows;
    const long long base = (active ? first + r : first) * COLS + OFFSET;  // idle threads repeat a row, so that barriers meet
    if (PREFETCH) {  // the next rows travel while these are reduced
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        a[c] = next_a[c];
        g[c] = next_g[c];
      }
      const long long next = first + GROUPS * ROWS_PER_BLOCK;
      if (next < rows) fetch(next, next_a, next_g);
    } else {
      fetch(first, a, g);
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (!inside((c * THREADS_PER_ROW + t) * VEC)) continue;
#pragma unroll
      for (int e = 0; e < VEC; ++e) sum += to_float(a[c].element[e]);
    }
    const float mean = row_reduce<Sum>(sum, r, t, slot ^= 1) * (1.0f / COLS);
    float squares = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (!inside((c * THREADS_PER_ROW + t) * VEC)) continue;
#pragma unroll
      for (int e = 0; e < VEC; ++e) squares += (to_float(a[c].element[e]) - mean) * (to_float(a[c].element[e]) - mean);
    }
    const float scale = rsqrtf(row_reduce<Sum>(squares, r, t, slot ^= 1) * (1.0f / COLS) + eps);
    float mean_g = 0, mean_gx = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      Vector w;
      w.raw = *(const typename Raw<VEC * sizeof(T)>::type*)(weight + OFFSET + col);
#pragma unroll
      for (int e = 0; e < VEC; ++e) {
        const float normal = (to_float(a[c].element[e]) - mean) * scale;
        const float grad = to_float(g[c].element[e]);
        mean_g += grad * to_float(w.element[e]);
        mean_gx += grad * to_float(w.element[e]) * normal;
        if (active) {
          dw[c * VEC + e] += grad * normal;
          db[c * VEC + e] += grad;
        }
      }
    }
    mean_g = row_reduce<Sum>(mean_g, r, t, slot ^= 1) * (1.0f / COLS);
    mean_gx = row_reduce<Sum>(mean_gx, r, t, slot ^= 1) * (1.0f / COLS);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = (c * THREADS_PER_ROW + t) * VEC;
      if (!inside(col)) continue;
      Vector w, out;
      w.raw = *(const typename Raw<VEC * sizeof(T)>::type*)(weight + OFFSET + col);
#pragma unroll
      for (int e = 0; e < VEC; ++e) {
        const float normal = (to_float(a[c].element[e]) - mean) * scale;
        out.element[e] = from_float<T>(scale * (to_float(g[c].element[e]) * to_float(w.element[e]) - mean_g - normal * mean_gx));
      }
      if (active) store(dx + base + col, out);
    }
  }
  // Shares: [gridDim.x * ROWS_PER_BLOCK][2][COLS]
  float* mine = shares + (GROUP * ROWS_PER_BLOCK + r) * 2 * COLS + OFFSET;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int e = 0; e < VEC; ++e) {
      const int col = (c * THREADS_PER_ROW + t) * VEC + e;
      if (!inside(col)) continue;
      mine[col] = dw[c * VEC + e];
      mine[COLS + col] = db[c * VEC + e];
    }
  }
  leave();
}

// 32 columns by 8 groups of shares per block.
extern "C" __global__ void __launch_bounds__(256) add_shares(const float* __restrict__ shares, T* __restrict__ dweight, T* __restrict__ dbias, int count) {
  __shared__ float w_part[8][32], b_part[8][32];
  const int col = blockIdx.x * 32 + threadIdx.x % 32;
  const int group = threadIdx.x / 32;
  float w = 0, b = 0;
  if (col < COLS) {
#pragma unroll 4
    for (int i = group; i < count; i += 8) {
      w += shares[(long long)i * 2 * COLS + col];
      b += shares[(long long)i * 2 * COLS + COLS + col];
    }
  }
  w_part[group][threadIdx.x % 32] = w;
  b_part[group][threadIdx.x % 32] = b;
  __syncthreads();
  if (group != 0 || col >= COLS) return;
#pragma unroll
  for (int i = 1; i < 8; ++i) {
    w += w_part[i][threadIdx.x % 32];
    b += b_part[i][threadIdx.x % 32];
  }
  dweight[col] = from_float<T>(w);
  dbias[col] = from_float<T>(b);
}
