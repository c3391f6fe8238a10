// Lines of cells that commas divide.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace atunner::planning {

/// The text without spaces, tabs and carriage returns at its ends.
std::string_view Trimmed(std::string_view text);

/// The trimmed cells of a line: "1, ,3" has three, the second of which is empty.
std::vector<std::string_view> Cells(std::string_view line);

/// The number that the whole text is; nullopt for anything else, and beyond the type's range.
template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace atunner::planning
