// Reads a bare .cu file: everything that tuning needs is inferred from the host code around the
// kernel. What cannot be inferred is asked for in one error that shows the annotation lines to add.
//
// Example:
//
//     __global__ void add(const float* a, float* c, int n) {
//       int i = blockIdx.x * blockDim.x + threadIdx.x;
//       if (i < n) c[i] += a[i];
//     }
//     int main() {
//       const int n = 1 << 20;
//       float *a, *c;
//       cudaMalloc(&a, n * sizeof(float));
//       cudaMalloc(&c, n * sizeof(float));
//       add<<<(n + 255) / 256, 256>>>(a, c, n);
//     }
//
// The stages, and what each of them finds here:
//
// 1. rewrite/ makes the source simpler and keeps its line numbers: headers are put in, and macros
//    that launch kernels are expanded.
// 2. cuda/ lexes it and finds kernels, launches, constants and types (CudaSyntax).
// 3. source_reading chooses the kernel (add: the only one that is launched) and has host/ follow
// the
//    program to its launch: grid (n + 255) // 256, block 256, arguments. Literals that these depend
//    on become named problem sizes ("leaves"): n = 1048576. Buffers: a points to n * 4 bytes by its
//    cudaMalloc, so it is float32[n]. The body only reads a (input) and reads and writes c
//    (in-out). index_arrays and index_fills find integer arrays that are indices into other arrays
//    and fill them with valid ones. device_symbols finds __constant__ variables.
// 4. source_tunables finds what may vary: the block is 256 and the body uses blockDim.x, and the
//    grid contains 255 and 256, so block_x in {32, …, 1024} with grid (n + (block_x - 1)) //
//    block_x is right. Guarded macros (#ifndef UNROLL) and template arguments are tunables too.
// 5. bare_source puts the UserKernel together, adds constraints (at most 1024 threads, at least one
//    warp) and derives a small size, e.g. n = 16384, at which the virtual GPU can verify it.
//
// If the source had only `void run(float* a, float* c, int n)` without a cudaMalloc, the error
// would be: the source does not say everything about kernel 'add'; add above the kernel, with your
// values: // atunner: size n = VALUE …
#pragma once

#include "atunner/intake/user_kernel.h"

namespace atunner {

struct SourceOptions {
  /// The kernel to tune; empty: the only one, or the one that an annotation names
  std::string kernel;
  bool extra_tunables = false;  ///< also tune the register limit and grid-stride grids
  int multiprocessors = 100;    ///< SMs of the target, for the sizes of grid-stride grids
  /// Problem sizes, as the annotation `size` states them
  Dims sizes = {};
};

/// `name` is the file's name in messages. docs/formats/annotations.md describes the annotations
/// (`// atunner: …`). kInvalidInput says what is wrong or missing.
Result<UserKernel> ParseBareSource(const std::string& text, const std::string& name,
                                   const SourceOptions& options);

/// The kernels that the host code launches, in the order of the file; empty if an annotation names
/// the kernel.
std::vector<std::string> LaunchedKernels(const std::string& text);

}  // namespace atunner
