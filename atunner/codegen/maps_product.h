// Products on Hopper whose operands tensor maps copy (kernels/families/gemm_maps.cu): matmul, and products inside of
// graphs.
#pragma once

#include "atunner/codegen/tensor_template.h"

namespace atunner {

/// c[m, n] = finish(a[m, k] · b): tensors of the task, and extents as expressions over its dims.
struct ProductParts {
  struct Part {
    std::string tensor;
    DType dtype;
  };
  Part a, b, c;
  std::string m, n, k;
  int64_t column_bytes = 0;   ///< what finishing a column takes in shared memory
  bool b_transposed = false;  ///< b is [n, k]; else [k, n], which 16-bit operands alone may be
};

class MapsProduct : public TensorTemplate {
 public:
  MapsProduct(const KernelSpec& spec, const DeviceProfile& profile, ProductParts parts);

  Result<RenderedKernel> Render(const Configuration& configuration) const override;

 protected:
  /// Rows of the operand are no multiples of 16 bytes, and widened first.
  bool wide_a() const { return wide_a_; }
  bool wide_b() const { return wide_b_; }
  /// As many rows as this configuration fetches at most, which may be all.
  Constraint RowsThere(const std::string& m, const Configuration& configuration) const;
  bool Streams(const Configuration& configuration) const override;

  ProductParts parts_;

 private:
  /// Boxes as wide as a swizzled row of an operand, and `box_rows` high.
  ArgBinding Map(bool wide, const ProductParts::Part& part, const std::string& columns, const std::string& rows,
                 int64_t box_rows) const;

  int64_t bytes_;  ///< of an operand's element
  bool wide_a_;
  bool wide_b_;
};

/// Can tensor maps copy these operands, and would that pay? Widening reads an operand and writes it once more.
bool MapsPay(const DeviceProfile& profile, int64_t m, int64_t n, int64_t k, int64_t bytes, bool b_transposed);

}  // namespace atunner
