// Products of matrices, alone or many of a shape: matmul, and products inside of graphs. What is
// multiplied is said here; the device and the types say by which schedules.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/operators/task.h"

namespace atunner {

/// c[batch, m, n] = epilogue(a[batch, m, k] · b[batch, k, n]), or epilogue(a · b, a · twin):
/// tensors of the task, and extents as expressions over its dims.
struct MatrixProduct {
  struct Part {
    std::string tensor;
    DType dtype;
  };
  Part a, b, c;
  std::string m, n, k, batch = "1";
  bool a_batched = false, b_batched = false;  ///< else there is one for all
  bool b_transposed = false;                  ///< b is [n, k]
  /// Of a, what counts: 0 = all of it; 1 = nothing above the diagonal; 2 = nothing below
  int64_t triangle = 0;
  std::string twin = {};  ///< lies as b does; empty = there is none
  /// Text like kernels/families/matmul/plain_epilogue.cuh; empty = that one
  std::string epilogue = {};
  Arguments epilogue_arguments = {};  ///< what EPILOGUE_PARAMETERS are given
  int64_t column_bytes = 0;           ///< what the epilogue of a column takes in shared memory
  Dims least = {};                    ///< of open sizes, where they may not be 1

  /// The text of `epilogue`, or of the one that does nothing.
  std::string EpilogueText() const;
};

/// matmul, of the type that it computes in.
MatrixProduct MatmulOf(const KernelSpec& spec);
/// Of a graph that is one product and what a map makes of it: nullopt for other graphs, and for
/// types that are not multiplied or the kernels do not store.
std::optional<MatrixProduct> ProductOf(const Task& task);

/// Of an expression over the task's dims, at its own sizes.
int64_t SizeOf(const std::string& extent, const KernelSpec& spec);

/// Rows, columns, depth and matrices.
struct Sizes {
  int64_t m, n, k, batch = 1;
};
/// Two sizes, as far as the task leaves them open: one row with as many columns and as much depth
/// as a source is right for multiples of, `steps`, and `large`. None where dims are open that are
/// no extents.
std::vector<Dims> CheckSizes(const KernelSpec& spec, const MatrixProduct& product, Sizes steps,
                             Sizes large);
/// Extents up to `most`; `rows`: that many at most, where it is not 0.
SizeFreedom FreeSizesOf(const KernelSpec& spec, const MatrixProduct& product, Sizes steps,
                        int64_t most, int64_t rows = 0);

/// kUnsupported where the device has nothing for these types, or sizes are beyond what kernels
/// count.
Result<std::unique_ptr<ScheduleTemplate>> BindProduct(const KernelSpec& spec,
                                                      const DeviceProfile& profile,
                                                      const MatrixProduct& product);

/// Schedules for `product`, of float32, as one of 16-bit planes on tensor cores
/// (kernels/families/matmul/split_float.cuh); nullptr where the device has no wgmma, or a is a
/// triangle.
std::unique_ptr<ScheduleTemplate> MakePlanesGemm(const KernelSpec& spec,
                                                 const DeviceProfile& profile,
                                                 const MatrixProduct& product);

}  // namespace atunner
