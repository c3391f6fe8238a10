// Row-wise operators, plainly: one block per row, one pass per quantity.
extern "C" __global__ void softmax(const T* x, OUT* y, long long rows, long long cols) {
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* row = x + r * cols;
    ACC m = -1e300 > (ACC)-3.4e38 ? (ACC)-1e300 : (ACC)-3.4e38;
    for (long long i = threadIdx.x; i < cols; i += THREADS) {
      const ACC v = IN(row[i]);
      m = (v != v || v > m) ? v : m;
    }
    m = block_max(m);
    ACC s = 0;
    for (long long i = threadIdx.x; i < cols; i += THREADS) s += exp(IN(row[i]) - m);
    s = block_sum(s);
    for (long long i = threadIdx.x; i < cols; i += THREADS)
      y[r * cols + i] = RESULT(exp(IN(row[i]) - m) / s);
  }
}

extern "C" __global__ void softmax_backward(const T* y, const T* dy, OUT* dx, long long rows,
                                            long long cols) {
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    ACC dot = 0;
    for (long long i = threadIdx.x; i < cols; i += THREADS)
      dot += IN(y[r * cols + i]) * IN(dy[r * cols + i]);
    dot = block_sum(dot);
    for (long long i = threadIdx.x; i < cols; i += THREADS) {
      dx[r * cols + i] = RESULT(IN(y[r * cols + i]) * (IN(dy[r * cols + i]) - dot));
    }
  }
}

struct Moments {
  ACC mean, scale;  // scale: 1 / standard deviation
};

__device__ Moments moments_of(const T* row, float eps, long long cols) {
  ACC s = 0;
  for (long long i = threadIdx.x; i < cols; i += THREADS) s += IN(row[i]);
  const ACC mean = block_sum(s) / (ACC)cols;
  s = 0;
  for (long long i = threadIdx.x; i < cols; i += THREADS)
    s += (IN(row[i]) - mean) * (IN(row[i]) - mean);
  return {mean, (ACC)1 / sqrt(block_sum(s) / (ACC)cols + (ACC)eps)};
}

extern "C" __global__ void layernorm(const T* x, const T* weight, const T* bias, OUT* y, float eps,
                                     long long rows, long long cols) {
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* row = x + r * cols;
    const auto [mean, scale] = moments_of(row, eps, cols);
    for (long long i = threadIdx.x; i < cols; i += THREADS) {
      y[r * cols + i] = RESULT((IN(row[i]) - mean) * scale * IN(weight[i]) + IN(bias[i]));
    }
  }
}

// Gradient of layernorm with respect to its input; mean and variance are taken again from x.
extern "C" __global__ void layernorm_backward_input(const T* x, const T* dy, const T* weight,
                                                    OUT* dx, float eps, long long rows,
                                                    long long cols) {
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* row = x + r * cols;
    const T* grad = dy + r * cols;
    const auto [mean, scale] = moments_of(row, eps, cols);
    ACC a = 0, b = 0;
    for (long long i = threadIdx.x; i < cols; i += THREADS) {
      const ACC g = IN(grad[i]) * IN(weight[i]);
      a += g;
      b += g * (IN(row[i]) - mean) * scale;
    }
    a = block_sum(a) / (ACC)cols;
    b = block_sum(b) / (ACC)cols;
    for (long long i = threadIdx.x; i < cols; i += THREADS) {
      const ACC g = IN(grad[i]) * IN(weight[i]);
      dx[r * cols + i] = RESULT(scale * (g - a - (IN(row[i]) - mean) * scale * b));
    }
  }
}

// Row statistics for the parameter gradients: stats[2r] = mean, stats[2r + 1] = 1 / standard
// deviation.
extern "C" __global__ void layernorm_statistics(const T* x, ACC* stats, float eps, long long rows,
                                                long long cols) {
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    const auto [mean, scale] = moments_of(x + r * cols, eps, cols);
    if (threadIdx.x == 0) {
      stats[2 * r] = mean;
      stats[2 * r + 1] = scale;
    }
  }
}

// Sums over all rows, eight columns per block.
extern "C" __global__ void layernorm_backward_parameters(const T* x, const T* dy, const ACC* stats,
                                                         OUT* dweight, OUT* dbias, long long rows,
                                                         long long cols) {
  // each group of threads takes every GROUPS-th row
  constexpr int COLUMNS = 8, GROUPS = THREADS / COLUMNS;
  __shared__ ACC part[2][GROUPS][COLUMNS];
  const int column = threadIdx.x % COLUMNS, group = threadIdx.x / COLUMNS;
  const long long i = (long long)blockIdx.x * COLUMNS + column;
  ACC w = 0, b = 0;
  for (long long r = group; i < cols && r < rows; r += GROUPS) {
    const ACC g = IN(dy[r * cols + i]);
    w += g * (IN(x[r * cols + i]) - stats[2 * r]) * stats[2 * r + 1];
    b += g;
  }
  part[0][group][column] = w;
  part[1][group][column] = b;
  __syncthreads();
  if (group != 0 || i >= cols) return;
  for (int other = 1; other < GROUPS; ++other) {
    w += part[0][other][column];
    b += part[1][other][column];
  }
  dweight[i] = RESULT(w);
  dbias[i] = RESULT(b);
}
