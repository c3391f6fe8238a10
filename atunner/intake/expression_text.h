// Functions on expressions in text form, as sources have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atunner {

/// Names that the expression refers to; empty if the text is not an expression.
std::vector<std::string> NamesOf(const std::string& text);
bool Contains(const std::vector<std::string>& names, std::string_view name);
/// The value of an expression without names, e.g. 1024 of "4 * 256"; nullopt otherwise.
std::optional<int64_t> LiteralOf(const std::string& text);
/// `text` with every name or number `from` replaced by `to`; adds the number of replacements to
/// `count`.
std::string ReplaceWord(const std::string& text, const std::string& from, const std::string& to,
                        int* count = nullptr);
/// `text` with every number `from` replaced by `to`; adds the number of replacements to `count`.
std::string ReplaceNumber(const std::string& text, int64_t from, const std::string& to, int& count);

}  // namespace atunner
