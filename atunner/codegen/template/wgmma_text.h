// The one instruction whose text names each accumulator, so that no template of CUDA C++ can hold
// it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

/// What is multiplied: MMA_TYPE; or A_TYPE and B_TYPE ("e4m3", "s8"), which both lie by rows of the
/// depth.
enum class Operands : uint8_t { k16Bits, kFloat8, kInt8 };

struct WgmmaFunction {
  int64_t columns = 64;         ///< of b and the sums: a multiple of 8 up to 256
  bool a_in_registers = false;  ///< else described, as b always is
  bool a_transposed = false;    ///< a is [depth][64] in memory
  /// Constant expression: 0 = b is [columns][depth] in memory, 1 = [depth][columns]
  std::string b_transposed;
  Operands operands = Operands::k16Bits;
};

/// A device function, `multiply`, that starts d[64, columns] (+)= a[64, depth] · b[depth, columns],
/// 32 bytes deep, for kernels/families/common/wgmma_common.cuh.
std::string WgmmaText(const WgmmaFunction& function);

/// The products of attention: scores of tiles of so many columns each, and weights times rows of
/// `dim` columns.
std::string AttentionProducts(const std::set<int64_t>& tiles, int64_t dim);

/// A map of `tensor`, or with "@" of a workspace, whose elements lie without gaps, `dims` from the
/// innermost on, in swizzled boxes. What a box has beyond a dimension's end is zeros, not the next
/// one's.
ArgBinding BoxMap(std::string_view tensor, DType dtype, std::vector<Expr> dims,
                  std::vector<Expr> box, const Expr& swizzle_bytes = 128);

}  // namespace atunner
