// All rewrites.
#pragma once

#include <span>
#include <string_view>

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

/// In the order in which ideas of equal gain are tried.
std::span<const Rewrite> Catalogue();
/// nullptr if there is none of that name.
const Rewrite* FindRewrite(std::string_view name);

}  // namespace atunner::rewrites
