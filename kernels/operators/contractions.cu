// Matrix product, convolution and attention, plainly. With TILE > 1 a thread has several results
// and what it loads serves all of them; every result is computed by the same operations in the same
// order as with TILE = 1, bit for bit.
extern "C" __global__ void matmul(const T* a, const T* b, OUT* c, long long m, long long n,
                                  long long k) {
  const long long j = (long long)blockIdx.x * (16 * TILE) + threadIdx.x;
  const long long i = (long long)blockIdx.y * (16 * TILE) + threadIdx.y;
  ACC sum[TILE][TILE] = {};
  for (long long p = 0; p < k; ++p) {
    ACC left[TILE], right[TILE];
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      left[t] = i + 16 * t < m ? IN(a[(i + 16 * t) * k + p]) : (ACC)0;
      right[t] = j + 16 * t < n ? IN(b[p * n + j + 16 * t]) : (ACC)0;
    }
#pragma unroll
    for (int r = 0; r < TILE; ++r) {
#pragma unroll
      for (int t = 0; t < TILE; ++t) sum[r][t] += left[r] * right[t];
    }
  }
#pragma unroll
  for (int r = 0; r < TILE; ++r) {
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      if (i + 16 * r < m && j + 16 * t < n) c[(i + 16 * r) * n + j + 16 * t] = RESULT(sum[r][t]);
    }
  }
}

// Layout NHWC: x[n, h, w, c], w[k, r, s, c] (output channel, filter row, filter column, input
// channel), y[n, p, q, k].
extern "C" __global__ void conv2d(const T* x, const T* w, OUT* y, long long n, int h, int wd, int c,
                                  int k, int r, int s, int p, int q, int stride, int padding,
                                  int dilation) {
  const int groups = (k + TILE - 1) / TILE;  // of output channels
  const long long total = n * p * q * groups;
  for (long long at = (long long)blockIdx.x * THREADS + threadIdx.x; at < total;
       at += (long long)gridDim.x * THREADS) {
    const int ko = at % groups * TILE;
    const long long pixel = at / groups;
    const int qo = pixel % q;
    const int po = pixel / q % p;
    const long long no = pixel / q / p;
    ACC sum[TILE] = {};
    for (int fr = 0; fr < r; ++fr) {
      for (int fs = 0; fs < s; ++fs) {
        const int hi = po * stride - padding + fr * dilation;
        const int wi = qo * stride - padding + fs * dilation;
        if (hi < 0 || hi >= h || wi < 0 || wi >= wd) continue;
        for (int ci = 0; ci < c; ++ci) {
          const ACC element = IN(x[((no * h + hi) * wd + wi) * c + ci]);
#pragma unroll
          for (int t = 0; t < TILE; ++t) {
            const int channel = ko + t < k ? ko + t : ko;
            sum[t] += element * IN(w[((channel * (long long)r + fr) * s + fs) * c + ci]);
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      if (ko + t < k) y[pixel * k + ko + t] = RESULT(sum[t]);
    }
  }
}

// q, k, v, y: [batch × heads, sequence, dim]. One block per TILE queries; keys in tiles of 128,
// online softmax. The weights that meet the values are rounded to the result's type, as in every
// attention of that precision: tensor cores take no other operands. In rows of few keys that
// rounding is the largest error, and a budget derived without it would refuse them all. Queries,
// keys and weights wait in shared memory, widened once.
extern "C" __global__ void attention(const T* q, const T* k, const T* v, OUT* y, long long heads,
                                     int sequence, int dim, float scale, int causal) {
  constexpr int STEP = 16;
  __shared__ ACC query[TILE][256], some[128][STEP + 1];  // elements of keys
  __shared__ ACC weight[TILE][128], rounded[TILE][128], reduce[TILE][128], totals[TILE];
  const long long head = blockIdx.y;
  const int row = blockIdx.x * TILE, self = threadIdx.x;
  int last[TILE];                                                 // keys that a query sees
  ACC top[TILE], first[TILE] = {}, second[TILE] = {}, total = 0;  // of query `self`
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const int own = row + t < sequence ? row + t : sequence - 1;
    for (int d = self; d < dim; d += 128) query[t][d] = IN(q[(head * sequence + own) * dim + d]);
    last[t] = causal ? own + 1 : sequence;
    top[t] = (ACC)-3.0e38;
  }
  const T* keys = k + head * sequence * dim;
  const T* values = v + head * sequence * dim;
  for (int base = 0; base < last[TILE - 1]; base += 128) {
    const int key = base + self, count = last[TILE - 1] - base < 128 ? last[TILE - 1] - base : 128;
    ACC score[TILE] = {};
    for (int from = 0; from < dim; from += STEP) {
      const int width = dim - from < STEP ? dim - from : STEP;
      for (int i = self; i < 128 * STEP; i += 128) {
        const int which = i / STEP, d = i % STEP;
        some[which][d] = which < count && d < width
                             ? IN(keys[(long long)(base + which) * dim + from + d])
                             : (ACC)0;
      }
      __syncthreads();
      for (int d = 0; d < width; ++d) {
#pragma unroll
        for (int t = 0; t < TILE; ++t) score[t] += query[t][from + d] * some[self][d];
      }
      __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t)
      reduce[t][self] = score[t] = key < last[t] ? score[t] * (ACC)scale : (ACC)-3.0e38;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
      if (self < half) {
#pragma unroll
        for (int t = 0; t < TILE; ++t) {
          const ACC a = reduce[t][self], b = reduce[t][self + half];
          reduce[t][self] = (a != a || a > b) ? a : b;
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      const ACC peak = reduce[t][0];
      const ACC next = (top[t] != top[t] || top[t] > peak) ? top[t] : peak;
      const ACC keep = exp(top[t] - next), own = key < last[t] ? exp(score[t] - next) : (ACC)0;
      weight[t][self] = own;
      rounded[t][self] = IN(RESULT(own));
      if (self == t) total *= keep;
      first[t] *= keep;
      second[t] *= keep;
      top[t] = next;
    }
    __syncthreads();
    if (self < TILE) {
      // behind what the query sees they are zero
      for (int j = 0; j < count; ++j) total += weight[self][j];
    }
    const auto add = [&](int j, auto sees) {
      const T* value = values + (long long)(base + j) * dim;
      const ACC low = self < dim ? IN(value[self]) : (ACC)0;
#pragma unroll
      for (int t = 0; t < TILE; ++t) {
        if (sees(t)) first[t] += rounded[t][j] * low;
      }
      if (dim <= 128) return;
      const ACC high = self + 128 < dim ? IN(value[self + 128]) : (ACC)0;
#pragma unroll
      for (int t = 0; t < TILE; ++t) {
        if (sees(t)) second[t] += rounded[t][j] * high;
      }
    };
    const int common = last[0] - base < count ? last[0] - base : count;  // keys that all see
    for (int j = 0; j < common; ++j) add(j, [](int) { return true; });
    for (int j = common < 0 ? 0 : common; j < count; ++j)
      add(j, [&](int t) { return base + j < last[t]; });
    __syncthreads();
  }
  if (self < TILE) totals[self] = total;
  __syncthreads();
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    if (row + t >= sequence) continue;
    OUT* result = y + (head * sequence + row + t) * dim;
    if (self < dim) result[self] = RESULT(first[t] / totals[t]);
    if (self + 128 < dim) result[self + 128] = RESULT(second[t] / totals[t]);
  }
}
