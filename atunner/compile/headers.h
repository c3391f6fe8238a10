// The headers that a source includes from its own folders, for the key of the compile cache.
#pragma once

#include <optional>

#include "atunner/base/digest.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

/// Digest of every header that `source` may include from its include folders or those of its -I
/// options, directly or through other headers, under any preprocessor condition. This is a superset
/// of the files that the compiler reads, without the compiler's own headers. nullopt if the text
/// does not show them: an #include of a macro, a header forced by an option, or more than 4096
/// files.
std::optional<Digest> HeaderDigest(const SourceUnit& source);

}  // namespace atunner
