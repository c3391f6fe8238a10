// Inlines a program's own headers.
#pragma once

#include <string>
#include <vector>

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// Replaces each `#include "…"` by the header's text between #line directives, so that messages
/// name the original lines. Kernels, structures and launches in headers are then read like the
/// file's own. `read` takes names relative to the source's folder. A header is searched beside the
/// file that includes it, in the folders of `// atunner: option = -I…` and in those of compiler
/// options `-I…`. Headers that are not found, or are larger than 256 KiB, stay an #include for the
/// compiler. The result is what identifies a run and what an artifact keeps, so that an edited
/// header makes new trials.
std::string WithHeaders(const std::string& text, const std::string& name, const FileReader& read,
                        const std::vector<std::string>& options = {});

}  // namespace atunner
