// `memory serve`: PyTorch programs whose GPU memory comes from libatunner_memory.so.
#pragma once

#include <string>

#include "atunner/base/result.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

/// With `out`, writes the library and its Python module into that folder. Else runs the program
/// behind `--`, whose Python takes the allocator as soon as it imports torch, and returns its exit
/// code.
Result<int> ServeMemory(const std::string& out, const Context& context);

}  // namespace atunner::cli
