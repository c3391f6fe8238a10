// The text of wgmma.mma_async, which names each accumulator, so that it has to be generated.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

/// The operand types: MMA_TYPE (16 bits); or A_TYPE and B_TYPE ("e4m3", "s8"), which are both
/// stored with k contiguous.
enum class Operands : uint8_t { k16Bits, kFloat8, kInt8 };

struct WgmmaFunction {
  int64_t columns = 64;         ///< of b and the sums: a multiple of 8 up to 256
  bool a_in_registers = false;  ///< else in shared memory, as b always is
  bool a_transposed = false;    ///< a is [depth][64] in memory
  /// Constant expression: 0 = b is [columns][depth] in memory, 1 = [depth][columns]
  std::string b_transposed;
  Operands operands = Operands::k16Bits;
};

/// The text of a device function `multiply` that starts d[64, columns] (+)= a[64, depth] · b[depth,
/// columns], with a depth of 32 bytes, for kernels/families/common/wgmma_common.cuh.
std::string WgmmaText(const WgmmaFunction& function);

/// The functions of attention: scores of key tiles of these sizes, and weights times values of
/// `dim` columns.
std::string AttentionProducts(const std::set<int64_t>& tiles, int64_t dim);

/// A tensor map of `tensor`, or with "@" of a workspace, which is stored without gaps, `dims` from
/// the innermost one on, in swizzled boxes. Elements of a box beyond a dimension's end are zeros.
ArgBinding BoxMap(std::string_view tensor, DType dtype, std::vector<Expr> dims,
                  std::vector<Expr> box, const Expr& swizzle_bytes = 128);

}  // namespace atunner
