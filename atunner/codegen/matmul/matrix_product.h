// Matrix products, single or batched: matmul, and products inside of graphs. MatrixProduct
// describes the product; the device and the types decide which templates can schedule it.
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
  bool a_batched = false, b_batched = false;  ///< else one matrix for all batches
  bool b_transposed = false;                  ///< b is [n, k]
  /// Zeros of a: 0 = none; 1 = above the diagonal; 2 = below it
  int64_t triangle = 0;
  std::string twin = {};  ///< the second b of a pair of products, stored like b; may be empty
  /// Text like kernels/families/matmul/plain_epilogue.cuh; empty = that one
  std::string epilogue = {};
  Arguments epilogue_arguments = {};  ///< arguments for EPILOGUE_PARAMETERS
  int64_t column_bytes = 0;           ///< shared memory that the epilogue needs per column
  Dims least = {};                    ///< least values of open sizes, if not 1

  /// The text of `epilogue`, or of the one that does nothing.
  std::string EpilogueText() const;
};

/// The product of the operator matmul.
MatrixProduct MatmulOf(const KernelSpec& spec);
/// The product of a graph that is one product with a map of its result; nullopt for other graphs,
/// and for types that are not multiplied or that the kernels do not store.
std::optional<MatrixProduct> ProductOf(const Task& task);

/// The value of an expression over the task's dims at its own sizes.
int64_t SizeOf(const std::string& extent, const KernelSpec& spec);

/// Rows, columns, depth and number of matrices.
struct Sizes {
  int64_t m, n, k, batch = 1;
};
/// Two sizes to check, as far as the task leaves sizes open: one row with as many columns and as
/// much depth as the source needs multiples of, `steps`, and `large`. Empty if other dims are open.
std::vector<Dims> CheckSizes(const KernelSpec& spec, const MatrixProduct& product, Sizes steps,
                             Sizes large);
/// The valid sizes: extents up to `most`; at most `rows` rows, if it is not 0.
ValidSizes FreeSizesOf(const KernelSpec& spec, const MatrixProduct& product, Sizes steps,
                       int64_t most, int64_t rows = 0);

/// Schedules for `product`. kUnsupported where the device has nothing for these types, or sizes
/// exceed the kernels' counters.
Result<std::unique_ptr<ScheduleTemplate>> BindProduct(const KernelSpec& spec,
                                                      const DeviceProfile& profile,
                                                      const MatrixProduct& product);

/// Schedules for a float32 product as split-float emulation on 16-bit tensor cores
/// (kernels/families/matmul/split_float.cuh); nullptr where the device has no wgmma, or a is
/// triangular.
std::unique_ptr<ScheduleTemplate> MakeSplitFloatGemm(const KernelSpec& spec,
                                                     const DeviceProfile& profile,
                                                     const MatrixProduct& product);

}  // namespace atunner
