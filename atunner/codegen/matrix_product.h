// Products of matrices, alone or many of a shape: matmul, and products inside of graphs. What is multiplied is said
// here; the device and the types say by which schedules.
#pragma once

#include <memory>
#include <string>

#include "atunner/codegen/bound_template.h"

namespace atunner {

/// c[batch, m, n] = finish(a[batch, m, k] · b[batch, k, n]): tensors of the task, and extents as expressions over its
/// dims.
struct MatrixProduct {
  struct Part {
    std::string tensor;
    DType dtype;
  };
  Part a, b, c;
  std::string m, n, k, batch = "1";
  bool a_batched = false, b_batched = false;  ///< else there is one for all
  bool b_transposed = false;                  ///< b is [n, k]
  int64_t triangle = 0;        ///< of a, what counts: 0 = all of it; 1 = nothing above the diagonal; 2 = nothing below
  std::string finish;          ///< text like kernels/families/plain_finish.cuh; empty = that one
  Arguments finish_arguments;  ///< what FINISH_PARAMETERS are given
  int64_t column_bytes = 0;    ///< what finishing a column takes in shared memory
  Dims least;                  ///< of open sizes, where they may not be 1

  /// Nothing but one product of two row-major matrices.
  bool Plain() const { return batch == "1" && !b_transposed && triangle == 0 && finish.empty(); }
};

/// kUnsupported where the device has nothing for these types, or sizes are beyond what kernels count.
Result<std::unique_ptr<ScheduleTemplate>> BindProduct(const KernelSpec& spec, const DeviceProfile& profile,
                                                      const MatrixProduct& product);

}  // namespace atunner
