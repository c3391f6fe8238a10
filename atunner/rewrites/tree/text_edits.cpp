#include "atunner/rewrites/tree/text_edits.h"

#include <algorithm>
#include <utility>

namespace atunner::rewrites {

void TextEdits::Replace(TokenRange range, std::string text) {
  if (range.empty()) return;
  const Token& last = syntax_.token(range.end - 1);
  const size_t offset = syntax_.token(range.begin).offset;
  all_.push_back({offset, last.offset + last.text.size() - offset, std::move(text)});
}

void TextEdits::InsertBefore(size_t token, std::string text) {
  all_.push_back({syntax_.token(token).offset, 0, std::move(text)});
}

void TextEdits::InsertBehind(size_t token, std::string text) {
  const Token& at = syntax_.token(token);
  all_.push_back({at.offset + at.text.size(), 0, std::move(text)});
}

std::string TextEdits::Apply() const {
  std::vector<Edit> ordered = all_;
  std::ranges::stable_sort(ordered, {}, &Edit::offset);
  std::string text;
  size_t at = 0;
  for (const Edit& edit : ordered) {
    text += syntax_.source.substr(at, edit.offset - at);
    text += edit.text;
    at = edit.offset + edit.length;
  }
  text += syntax_.source.substr(at);
  return text;
}

std::string IndentAt(const CudaSyntax& syntax, size_t token) {
  const size_t offset = syntax.token(token).offset;
  const size_t line = offset == 0 ? 0 : syntax.source.rfind('\n', offset - 1);
  const size_t begin = line == std::string_view::npos ? 0 : line + (offset == 0 ? 0 : 1);
  const size_t end = std::min(offset, syntax.source.find_first_not_of(" \t", begin));
  return std::string(syntax.source.substr(begin, end - begin));
}

}  // namespace atunner::rewrites
