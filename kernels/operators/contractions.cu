// Matrix product, convolution and attention, plainly. With TILE > 1 a thread has several results and what it loads serves
// all of them; every result is computed by the same operations in the same order as with TILE = 1, bit for bit.
extern "C" __global__ void matmul(const T* a, const T* b, OUT* c, long long m, long long n, long long k) {
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

// Layout NHWC: x[n, h, w, c], w[k, r, s, c] (output channel, filter row, filter column, input channel), y[n, p, q, k].
extern "C" __global__ void conv2d(const T* x, const T* w, OUT* y, long long n, int h, int wd, int c, int k, int r, int s, int p, int q,
                                  int stride, int padding, int dilation) {
  const int groups = (k + TILE - 1) / TILE;  // of output channels
  const long long total = n * p * q * groups;
  for (long long at = (long long)blockIdx.x * THREADS + threadIdx.x; at < total; at += (long long)gridDim.x * THREADS) {
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

// q, k, v, y: [batch × heads, sequence, dim]. One block per TILE queries; keys in tiles of 128, online softmax. The weights
// that meet the values are rounded to the result's type, as in every attention of that precision: tensor cores take no
// other operands. In rows of few keys that rounding is the largest error, and a budget derived without it would refuse
// them all.
extern "C" __global__ void attention(const T* q, const T* k, const T* v, OUT* y, long long heads, int sequence, int dim, float scale, int causal) {
  __shared__ ACC weight[TILE][128];
  __shared__ ACC reduce[TILE][128];
  const long long head = blockIdx.y;
  const int row = blockIdx.x * TILE;
  const T* query[TILE];
  int last[TILE];  // keys that a query sees
  ACC top[TILE], total[TILE] = {}, first[TILE] = {}, second[TILE] = {};
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const int own = row + t < sequence ? row + t : sequence - 1;
    query[t] = q + (head * sequence + own) * dim;
    last[t] = causal ? own + 1 : sequence;
    top[t] = (ACC)-3.0e38;
  }
  const T* keys = k + head * sequence * dim;
  const T* values = v + head * sequence * dim;
  for (int base = 0; base < last[TILE - 1]; base += 128) {
    const int key = base + threadIdx.x;
    ACC score[TILE] = {};
    if (key < last[TILE - 1]) {
      for (int d = 0; d < dim; ++d) {
        const ACC element = IN(keys[(long long)key * dim + d]);
#pragma unroll
        for (int t = 0; t < TILE; ++t) score[t] += IN(query[t][d]) * element;
      }
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) reduce[t][threadIdx.x] = score[t] = key < last[t] ? score[t] * (ACC)scale : (ACC)-3.0e38;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
      if (threadIdx.x < half) {
#pragma unroll
        for (int t = 0; t < TILE; ++t) {
          const ACC a = reduce[t][threadIdx.x], b = reduce[t][threadIdx.x + half];
          reduce[t][threadIdx.x] = (a != a || a > b) ? a : b;
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      const ACC peak = reduce[t][0];
      const ACC next = (top[t] != top[t] || top[t] > peak) ? top[t] : peak;
      const ACC keep = exp(top[t] - next);
      weight[t][threadIdx.x] = key < last[t] ? exp(score[t] - next) : (ACC)0;
      total[t] *= keep;
      first[t] *= keep;
      second[t] *= keep;
      top[t] = next;
    }
    __syncthreads();
    const int count = last[TILE - 1] - base < 128 ? last[TILE - 1] - base : 128;
    for (int j = 0; j < count; ++j) {
      const T* value = values + (long long)(base + j) * dim;
      const ACC low = threadIdx.x < dim ? IN(value[threadIdx.x]) : (ACC)0;
      const ACC high = threadIdx.x + 128 < dim ? IN(value[threadIdx.x + 128]) : (ACC)0;
#pragma unroll
      for (int t = 0; t < TILE; ++t) {
        if (base + j >= last[t]) continue;
        total[t] += weight[t][j];
        const ACC p = IN(RESULT(weight[t][j]));
        first[t] += p * low;
        second[t] += p * high;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    if (row + t >= sequence) continue;
    OUT* result = y + (head * sequence + row + t) * dim;
    if (threadIdx.x < dim) result[threadIdx.x] = RESULT(first[t] / total[t]);
    if (threadIdx.x + 128 < dim) result[threadIdx.x + 128] = RESULT(second[t] / total[t]);
  }
}
