// What a source includes from folders of its own, for the key of the compile cache.
#pragma once

#include <optional>

#include "atunner/base/digest.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

/// Digest of every header that `source` may include from its include folders or those of its -I
/// options, directly or through others, whatever conditions stand around an #include: a superset of
/// what the compiler reads, its own headers apart. nullopt where that cannot be told from the text:
/// a name that a macro makes, a header forced by an option, or more than 4096 files.
std::optional<Digest> HeaderDigest(const SourceUnit& source);

}  // namespace atunner
