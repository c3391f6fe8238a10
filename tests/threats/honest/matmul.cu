// c = a b for n x n matrices.
extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
#if V == 0  // in order, fused multiply-add
  if (i >= n || j >= n) return;
  float s = 0;
  for (int l = 0; l < n; ++l) s = fmaf(a[i * n + l], b[l * n + j], s);
  c[i * n + j] = s;
#elif V == 1  // no fused multiply-add
  if (i >= n || j >= n) return;
  float s = 0;
  for (int l = 0; l < n; ++l) s = __fadd_rn(s, __fmul_rn(a[i * n + l], b[l * n + j]));
  c[i * n + j] = s;
#elif V == 2  // tiles in shared memory
  __shared__ float ta[16][16], tb[16][17];
  float s = 0;
  for (int l = 0; l < n; l += 16) {
    ta[threadIdx.y][threadIdx.x] = i < n && l + threadIdx.x < n ? a[i * n + l + threadIdx.x] : 0;
    tb[threadIdx.y][threadIdx.x] = j < n && l + threadIdx.y < n ? b[(l + threadIdx.y) * n + j] : 0;
    __syncthreads();
    for (int m = 0; m < 16; ++m) s += ta[threadIdx.y][m] * tb[m][threadIdx.x];
    __syncthreads();
  }
  if (i < n && j < n) c[i * n + j] = s;
#elif V == 3  // split in two halves of k
  if (i >= n || j >= n) return;
  float s = 0, r = 0;
  for (int l = 0; l < n / 2; ++l) s += a[i * n + l] * b[l * n + j];
  for (int l = n / 2; l < n; ++l) r += a[i * n + l] * b[l * n + j];
  c[i * n + j] = s + r;
#elif V == 4  // double
  if (i >= n || j >= n) return;
  double s = 0;
  for (int l = 0; l < n; ++l) s += (double)a[i * n + l] * b[l * n + j];
  c[i * n + j] = (float)s;
#else  // from the end
  if (i >= n || j >= n) return;
  float s = 0;
  for (int l = n; l-- > 0;) s += a[i * n + l] * b[l * n + j];
  c[i * n + j] = s;
#endif
}
