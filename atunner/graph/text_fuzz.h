#pragma once

#include <string_view>

namespace atunner::graph {

/// Reads foreign text; what is accepted can be written, read again and evaluated.
void FuzzText(std::string_view text);

}  // namespace atunner::graph
