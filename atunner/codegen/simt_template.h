// Products in float32 with fused multiply-adds (kernels/families/simt_tile.cuh).
#pragma once

#include "atunner/codegen/product_template.h"

namespace atunner {

class SimtTemplate : public ProductTemplate {
 public:
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override;

 protected:
  /// `b_transposed`: b is stored as [n][k].
  SimtTemplate(const KernelSpec& spec, const DeviceProfile& profile, Extents extents, bool b_transposed);

  int64_t Threads(const Configuration& configuration) const override { return Evaluate(threads_, configuration); }
  int64_t SharedBytes(const Configuration& configuration) const override { return Evaluate(shared_, configuration); }
  std::vector<std::vector<int64_t>> Starts() const override;
  /// The constants that simt_tile.cuh expects.
  ConstantBlock TileConstants(const Configuration& configuration) const;

  bool b_transposed_;
  Expr threads_, registers_, shared_;  ///< of a block, of a thread, and bytes of a block
};

}  // namespace atunner
