#include "atunner/intake/expression_text.h"

#include <algorithm>
#include <cctype>

#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

std::vector<std::string> NamesOf(const std::string& text) {
  const auto expr = Expr::Parse(text);
  return expr ? expr->Names() : std::vector<std::string>{};
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::optional<int64_t> LiteralOf(const std::string& text) {
  const auto expr = Expr::Parse(text);
  if (!expr || !expr->Names().empty()) return std::nullopt;
  const auto value = expr->EvaluateInt({});
  return value ? std::optional(*value) : std::nullopt;
}

std::string ReplaceWord(const std::string& text, const std::string& from, const std::string& to,
                        int* count) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!IsWord(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsWord(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    out += word == from ? to : word;
    if (count != nullptr) *count += word == from;
    i = end;
  }
  return out;
}

std::string ReplaceNumber(const std::string& text, int64_t from, const std::string& to,
                          int& count) {
  return ReplaceWord(text, std::to_string(from), to, &count);
}

}  // namespace atunner
