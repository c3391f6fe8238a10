// Running sums by a warp: part of sharing a loop.
#pragma once

#include <optional>
#include <string>

#include "atunner/rewrites/source/loop_uses.h"

namespace atunner::rewrites {

/// The loop `for (…) { sum += e; y[j] = … sum …; }` with 32 iterations at once, whose sums a scan
/// over the warp gives; in any order of its two kinds of statements. `lane`: the variable that
/// holds the thread's place in its warp. nullopt for a loop of another form.
std::optional<std::string> WarpScan(const Subject& subject, const CountedLoop& loop,
                                    const std::string& lane);

}  // namespace atunner::rewrites
