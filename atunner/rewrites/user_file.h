// A rewritten kernel put back into the user's file, with the grids of its launches.
#pragma once

#include <string>

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

/// `first` and then `second`.
GridChange Joined(const GridChange& first, const GridChange& second);

/// The text of the user's file with the kernel as `rewritten` defines it. `before` is the text from
/// which it was rewritten: the file's device code. Launches in the file get the new grid.
/// kUnsupported if the file defines the kernel in another way than `before`, because macros were
/// expanded.
Result<std::string> RewrittenFile(const std::string& file, const std::string& before,
                                  const std::string& rewritten, const std::string& kernel,
                                  const GridChange& grid);

}  // namespace atunner::rewrites
