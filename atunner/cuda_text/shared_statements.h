// Which statements of ElementText several elements share.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace atunner::graph {

/// Of `text`, whose lanes' statements are indented by eight: what a lane computes from no more than
/// coordinates behind the first `outer` and from what does not differ by `item`, kept in arrays
/// over lanes; and `text` with these in its place.
std::pair<std::string, std::string> WithShared(const std::string& text, size_t outer);

}  // namespace atunner::graph
