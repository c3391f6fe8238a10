// First step where rows are not multiples of 16 bytes: a copy with rows of `wide` elements, zeros at their ends.
extern "C" __global__ void __launch_bounds__(256) widen(const T* __restrict__ from, T* __restrict__ to, long long rows, int width, int wide) {
  const int units = wide / 8;
  for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < rows * units; i += (long long)gridDim.x * 256) {
    const long long row = i / units;
    const int column = (int)(i % units) * 8;
    T eight[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) eight[e] = column + e < width ? from[row * width + column + e] : T(0.0f);
    *(uint4*)(to + row * wide + column) = *(uint4*)eight;
  }
}
