// Second step of split-K. The first step computes SPLIT_K partial products, block (x, s) over the
// s-th part of k, and stores them in float32:
//     partial_sums[SPLIT_K][m][n],  c[i][j] = epilogue(Σ_s partial_sums[s][i][j])
// This step adds them in the fixed order s = 0, 1, …, so that every run gives the same bits (atomic
// additions would not), applies the epilogue and rounds. If SPLIT_K is large, PARTS groups of
// threads add up a part each, so that their loads overlap.
// Split-K pays where the result has too few tiles to fill the GPU, for example m = n = 256 and k =
// 16384: four tiles of 128 x 128 on 132 SMs. A cluster can add the sums in shared memory instead
// (cluster_store.cuh), without this step.
constexpr int PARTS = SPLIT_K < 16 ? 1 : 8;
constexpr int ADDERS = 256 / PARTS;  // groups of elements that a block adds up at once

/// COUNT neighbouring elements at a time; COUNT divides `elements`.
template <int COUNT>
DEVICE void add_all(const float* __restrict__ partial_sums, T* __restrict__ c, long long elements,
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
      UNROLLED for (int s = 0; s < SPLIT_K / PARTS; ++s)
          add(*(const Units<float, COUNT>*)(partial_sums +
                                            (part * (SPLIT_K / PARTS) + s) * elements + at));
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
    add_partial_sums(const float* __restrict__ partial_sums, T* __restrict__ c,
                     long long elements EPILOGUE_PARAMETERS) {
  if (elements % 4 == 0) {
    add_all<4>(partial_sums, c, elements, EPILOGUE(0));
  } else {
    add_all<1>(partial_sums, c, elements, EPILOGUE(0));
  }
}
