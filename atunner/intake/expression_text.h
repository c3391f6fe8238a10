// Questions about expressions that are still text, as a source has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atunner {

/// Names that the expression refers to; none when it is no expression.
std::vector<std::string> NamesOf(const std::string& text);
bool Contains(const std::vector<std::string>& names, std::string_view name);
/// The text's value when it refers to nothing.
std::optional<int64_t> LiteralOf(const std::string& text);
/// `text` with every number `from` replaced by `to`; adds to `count` how many were.
std::string ReplaceNumber(const std::string& text, int64_t from, const std::string& to, int& count);

}  // namespace atunner
