// Products in float16 and bfloat16 on tensor cores, whatever instruction multiplies (main_loop.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "atunner/codegen/main_loop.h"

namespace atunner {

class TensorTemplate : public ProductTemplate {
 public:
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override;

 protected:
  TensorTemplate(const KernelSpec& spec, const DeviceProfile& profile, const MainLoop& loop, Extents extents,
                 const std::string& more_shared = "0");

  int64_t Threads(const Configuration& configuration) const override;
  int64_t SharedBytes(const Configuration& configuration) const override;
  std::vector<std::vector<int64_t>> Starts() const override { return loop_.Starts(); }
  bool Persistent(const Configuration& configuration) const { return Integer(configuration, "persistent") != 0; }
  /// Blocks that an SM holds.
  int64_t Resident(const Configuration& configuration) const;
  /// The product's step: a block per tile, or as many blocks as the device holds.
  LaunchStep TileStep(const Configuration& configuration, const char* entry, const std::string& m, const std::string& n,
                      const std::string& batch = "1") const;
  /// The constants that the tile's sources expect.
  ConstantBlock TileConstants(const Configuration& configuration, bool b_transposed) const;
  /// The text of what becomes of sums before they are stored (kernels/families/plain_finish.cuh).
  virtual std::string Finish() const;
  /// The whole source: main loop, tiles, `kernel`, and what `widened` operands and a split of the depth need.
  /// `places`: where the result lies, if not row-major.
  SourceUnit EmitProduct(const Configuration& configuration, const ConstantBlock& constants, std::string_view kernel,
                         bool widened, std::string_view places = {}) const;

 private:
  const MainLoop& loop_;
  Expr threads_;
  Expr registers_;  ///< of a thread
  Expr shared_;     ///< bytes
};

/// Largest power of two up to `most` that divides `extent`: elements that are sure to start at a multiple of their
/// size.
int64_t Alignment(int64_t extent, int64_t most = 8);
/// A tensor of `rows` × `width` elements, as expressions over the task's dims.
struct Widened {
  std::string tensor, rows, width;
  int64_t unit =
      128;  ///< bytes of whose multiple the copy's rows are: boxes' own, or 16 for what is fetched by 16 bytes
};
/// A step that copies each tensor into workspace "wide_" + its name with wider rows (widen.cuh). Two at most, of
/// elements of `bytes`.
void AddWidening(LaunchPlan& plan, std::span<const Widened> tensors, int64_t bytes = 2);
/// The expression of such a row's elements.
std::string Wide(const std::string& width, int64_t bytes, int64_t unit = 128);

}  // namespace atunner
