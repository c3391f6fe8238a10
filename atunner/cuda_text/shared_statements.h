// Hoists statements of ElementText that several elements of a thread have in common.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace atunner::graph {

/// Splits `text`, the body of a loop over `item` in which the statements of lanes are indented by
/// eight spaces. The first result holds the statements that depend on neither `item` nor the first
/// `outer` coordinates; they fill arrays over lanes, outside of the loop. The second is `text` with
/// reads of these arrays in their place.
std::pair<std::string, std::string> WithShared(const std::string& text, size_t outer);

}  // namespace atunner::graph
