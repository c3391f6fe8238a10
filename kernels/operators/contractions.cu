// Matrix product, convolution and attention, plainly.
extern "C" __global__ void matmul(const T* a, const T* b, OUT* c, long long m, long long n, long long k) {
  const long long j = (long long)blockIdx.x * 16 + threadIdx.x;
  const long long i = (long long)blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  ACC sum = 0;
  for (long long p = 0; p < k; ++p) sum += IN(a[i * k + p]) * IN(b[p * n + j]);
  c[i * n + j] = RESULT(sum);
}

// Layout NHWC: x[n, h, w, c], w[k, r, s, c] (output channel, filter row, filter column, input channel), y[n, p, q, k].
extern "C" __global__ void conv2d(const T* x, const T* w, OUT* y, long long n, int h, int wd, int c, int k, int r, int s, int p, int q,
                                  int stride, int padding, int dilation) {
  const long long total = n * p * q * k;
  for (long long at = (long long)blockIdx.x * THREADS + threadIdx.x; at < total; at += (long long)gridDim.x * THREADS) {
    const int ko = at % k;
    const int qo = at / k % q;
    const int po = at / k / q % p;
    const long long no = at / k / q / p;
    ACC sum = 0;
    for (int fr = 0; fr < r; ++fr) {
      for (int fs = 0; fs < s; ++fs) {
        const int hi = po * stride - padding + fr * dilation;
        const int wi = qo * stride - padding + fs * dilation;
        if (hi < 0 || hi >= h || wi < 0 || wi >= wd) continue;
        for (int ci = 0; ci < c; ++ci) {
          sum += IN(x[((no * h + hi) * wd + wi) * c + ci]) * IN(w[((ko * (long long)r + fr) * s + fs) * c + ci]);
        }
      }
    }
    y[at] = RESULT(sum);
  }
}

// q, k, v, y: [batch × heads, sequence, dim]. One block per query; keys in tiles of 128, online softmax. The weights that
// meet the values are rounded to the result's type, as in every attention of that precision: tensor cores take no other
// operands. In rows of few keys that rounding is the largest error, and a budget derived without it would refuse them all.
extern "C" __global__ void attention(const T* q, const T* k, const T* v, OUT* y, long long heads, int sequence, int dim, float scale, int causal) {
  __shared__ ACC weight[128];
  __shared__ ACC reduce[128];
  const long long head = blockIdx.y;
  const int row = blockIdx.x;
  const T* query = q + (head * sequence + row) * dim;
  const T* keys = k + head * sequence * dim;
  const T* values = v + head * sequence * dim;
  const int last = causal ? row + 1 : sequence;
  ACC top = (ACC)-3.0e38, total = 0, first = 0, second = 0;
  for (int base = 0; base < last; base += 128) {
    const int key = base + threadIdx.x;
    ACC score = (ACC)-3.0e38;
    if (key < last) {
      score = 0;
      for (int d = 0; d < dim; ++d) score += IN(query[d]) * IN(keys[(long long)key * dim + d]);
      score *= (ACC)scale;
    }
    reduce[threadIdx.x] = score;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
      if (threadIdx.x < half) {
        const ACC a = reduce[threadIdx.x], b = reduce[threadIdx.x + half];
        reduce[threadIdx.x] = (a != a || a > b) ? a : b;
      }
      __syncthreads();
    }
    const ACC peak = reduce[0];
    const ACC next = (top != top || top > peak) ? top : peak;
    const ACC keep = exp(top - next);
    weight[threadIdx.x] = key < last ? exp(score - next) : (ACC)0;
    __syncthreads();
    total *= keep;
    first *= keep;
    second *= keep;
    const int count = last - base < 128 ? last - base : 128;
    for (int j = 0; j < count; ++j) {
      total += weight[j];
      const ACC p = IN(RESULT(weight[j]));
      if (threadIdx.x < dim) first += p * IN(values[(long long)(base + j) * dim + threadIdx.x]);
      if (threadIdx.x + 128 < dim) second += p * IN(values[(long long)(base + j) * dim + threadIdx.x + 128]);
    }
    top = next;
    __syncthreads();
  }
  if (threadIdx.x < dim) y[(head * sequence + row) * dim + threadIdx.x] = RESULT(first / total);
  if (threadIdx.x + 128 < dim) y[(head * sequence + row) * dim + threadIdx.x + 128] = RESULT(second / total);
}
