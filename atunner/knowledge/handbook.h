// The handbook of docs/handbook, as it is built into the program.
#pragma once

#include <span>
#include <string_view>

namespace atunner::knowledge {

struct Page {
  std::string_view name;  ///< "bank-conflicts"
  std::string_view text;  ///< Markdown
};

std::span<const Page> Handbook();
/// nullptr for an unknown name.
const Page* FindPage(std::string_view name);

}  // namespace atunner::knowledge
