// Second step of a split over k: the shares of [m, n] are added in a fixed order, so that every run
// gives the same bits. Of many shares each warp adds up a part, so that their loads run side by
// side.
constexpr int PARTS = SPLIT_K < 16 ? 1 : 8;
constexpr int ADDERS = 256 / PARTS;  // groups of elements that a block adds up at once

/// COUNT elements at a time, which divides them all.
template <int COUNT>
DEVICE void add_all(const float* __restrict__ shares, T* __restrict__ c, long long elements,
                    const Epilogue& epilogue) {
  __shared__ Units<float, COUNT> sums[PARTS][ADDERS];
  const int place = threadIdx.x % ADDERS, part = threadIdx.x / ADDERS;
  for (long long first = (long long)blockIdx.x * ADDERS * COUNT; first < elements;
       first += (long long)gridDim.x * ADDERS * COUNT) {
    const long long at = first + place * COUNT;
    Units<float, COUNT> sum = {};
    const auto add = [&](const Units<float, COUNT>& more) {
      UNROLLED for (int e = 0; e < COUNT; ++e) sum.element[e] += more.element[e];
    };
    if (at < elements) {
      UNROLLED for (int s = 0; s < SPLIT_K / PARTS; ++s) add(
          *(const Units<float, COUNT>*)(shares + (part * (SPLIT_K / PARTS) + s) * elements + at));
    }
    if (PARTS > 1) {
      sums[part][place] = sum;
      __syncthreads();
      for (int p = 1; p < PARTS && part == 0; ++p) add(sums[p][place]);
      __syncthreads();
    }
    if (part != 0 || at >= elements) continue;
    Units<T, COUNT> finished;
    UNROLLED for (int e = 0; e < COUNT; ++e)
        finished.element[e] = T(epilogue.at(sum.element[e], at + e));
    *(Units<T, COUNT>*)(c + at) = finished;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    add_shares(const float* __restrict__ shares, T* __restrict__ c,
               long long elements EPILOGUE_PARAMETERS) {
  if (elements % 4 == 0) {
    add_all<4>(shares, c, elements, EPILOGUE(0));
  } else {
    add_all<1>(shares, c, elements, EPILOGUE(0));
  }
}
