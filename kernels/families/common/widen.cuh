// First step where rows are not multiples of 16 bytes: copies with rows of `wide` elements, zeros
// at their ends. One launch widens up to two matrices, one per blockIdx.y.
struct Widening {
  const Operand* from;
  Operand* to;
  long long rows;
  int width, wide;
};
DEVICE void widen_rows(Widening matrix) {
  constexpr int UNIT = 16 / sizeof(Operand);
  const int units = matrix.wide / UNIT;
  for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < matrix.rows * units;
       i += (long long)gridDim.x * 256) {
    const long long row = i / units;
    const int column = (int)(i % units) * UNIT;
    __align__(16) Operand unit[UNIT];
    UNROLLED for (int e = 0; e < UNIT; ++e)
        unit[e] = column + e < matrix.width ? matrix.from[row * matrix.width + column + e]
                                            : Operand(0.0f);
    *(uint4*)(matrix.to + row * matrix.wide + column) = *(uint4*)unit;
  }
}
extern "C" __global__ void __launch_bounds__(256)
    widen(const Operand* __restrict__ from, Operand* __restrict__ to, long long rows, int width,
          int wide, const Operand* __restrict__ from2, Operand* __restrict__ to2, long long rows2,
          int width2, int wide2) {
  widen_rows(blockIdx.y == 0 ? Widening{from, to, rows, width, wide}
                             : Widening{from2, to2, rows2, width2, wide2});
}
