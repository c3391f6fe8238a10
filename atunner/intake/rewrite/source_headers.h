// A program's own headers, put in where it includes them.
#pragma once

#include <string>

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// The source with what `#include "…"` names in its place, between #line directives, so that
/// messages name lines as the files have them. Kernels, structures and launches of headers are then
/// read like the file's own, and host functions of headers are left out like its own. `read` takes
/// names relative to the source's folder; a header is looked for beside the file that includes it,
/// then in the source's `// atunner: option = -I…`. What is not found, or large, stays an #include,
/// for the compiler.
std::string WithHeaders(const std::string& text, const std::string& name, const FileReader& read);

}  // namespace atunner
