// Smaller problem sizes at which the binary and the launches of a described kernel are valid too.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// Up to two sizes, the larger one last, made by halving the sizes in `varied` until few elements
/// are left; empty if there are none. A size keeps its odd factor, and as large a power of two as
/// any grid divides it by: kernels may rely on whole blocks, tiles and vectors. Example: n =
/// 4194304 with the grid ceil_div(n, block * items), at most 1024 * 4, becomes 8192 and 16384.
std::vector<Dims> HalvedCheckSizes(const UserKernel& kernel, const std::set<std::string>& varied);

/// The integer value of an expression of names, numbers, products and, with `sums`, sums and
/// differences; nullopt for other expressions.
std::optional<int64_t> WholeOf(const Expr::Node& node, const Bindings& bindings, bool sums);

/// The sizes of `kernel` that may vary: they reach the kernel as integers in a launch, each grid
/// extent but 1 follows from one, and the source has none of their values as a number of its own.
std::set<std::string> FreeSizesOf(const UserKernel& kernel);

}  // namespace atunner
