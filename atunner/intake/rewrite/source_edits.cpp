#include "atunner/intake/rewrite/source_edits.h"

#include <algorithm>

namespace atunner {

void Edits::Replace(TokenRange range, std::string text) {
  if (range.empty()) return;
  const std::string_view old = syntax_.Text(range);
  all_.push_back(
      {static_cast<size_t>(old.data() - syntax_.source.data()), old.size(), std::move(text)});
}

void Edits::Insert(size_t before, std::string text) {
  all_.push_back({syntax_.token(before).offset, 0, std::move(text)});
}

std::string Edits::Apply() {
  std::ranges::stable_sort(all_, {},
                           [](const Edit& edit) { return std::pair(edit.offset, edit.length); });
  std::string text;
  size_t at = 0;
  for (const Edit& edit : all_) {
    if (edit.offset < at) continue;
    const std::string_view old = syntax_.source.substr(edit.offset, edit.length);
    const auto lost = std::ranges::count(old, '\n') - std::ranges::count(edit.text, '\n');
    text.append(syntax_.source.substr(at, edit.offset - at)).append(edit.text);
    text.append(static_cast<size_t>(std::max<std::ptrdiff_t>(lost, 0)), '\n');
    at = edit.offset + edit.length;
  }
  return text.append(syntax_.source.substr(at));
}

}  // namespace atunner
