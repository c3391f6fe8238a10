#include "atunner/planning/cells.h"

#include <algorithm>
#include <cstddef>

namespace atunner::planning {

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> Cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t at = 0; at <= line.size();) {
    const size_t comma = std::min(line.find(',', at), line.size());
    cells.push_back(Trimmed(line.substr(at, comma - at)));
    at = comma + 1;
  }
  return cells;
}

}  // namespace atunner::planning
