#include "atunner/intake/described/t1_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace atunner::t1 {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Replaces `call(argument)` in any spacing.
void ReplaceCall(std::string& text, std::string_view call, char open, std::string_view argument,
                 char close, const std::string& replacement) {
  for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
    if (at > 0 && IsWord(text[at - 1])) continue;
    size_t i = at + call.size();
    const auto skip = [&] {
      while (i < text.size() && text[i] == ' ') ++i;
    };
    skip();
    if (i >= text.size() || text[i] != open) continue;
    ++i;
    skip();
    if (text.compare(i, argument.size(), argument) != 0) continue;
    i += argument.size();
    skip();
    if (i >= text.size() || text[i] != close) continue;
    text.replace(at, i + 1 - at, replacement);
  }
}

}  // namespace

const json& At(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::optional<std::string> TextOf(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string Scope::Substituted(std::string text) const {
  for (size_t i = 0; i < problem.size(); ++i)
    ReplaceCall(text, "ProblemSize", '[', std::to_string(i), ']', "(" + problem[i] + ")");
  for (const Parameter& parameter : space.parameters) {
    const auto [low, high] = std::ranges::minmax_element(parameter.values, {}, ToDouble);
    ReplaceCall(text, "max", '(', parameter.name, ')', ToString(*high));
    ReplaceCall(text, "min", '(', parameter.name, ')', ToString(*low));
  }
  return text;
}

Result<Expr> Scope::Parse(const json& stated, const std::string& key) const {
  const auto text = TextOf(stated);
  if (!text) return Bad(key, "missing, or neither a number nor a text");
  auto expr = Expr::Parse(Substituted(*text));
  if (!expr) return Bad(key, expr.error().ToString());
  return *std::move(expr);
}

Result<int64_t> Scope::Size(const json& stated, const std::string& key) const {
  ATUNNER_TRY(const Expr expr, Parse(stated, key));
  std::vector<Value> largest;
  for (const Parameter& parameter : space.parameters)
    largest.push_back(*std::ranges::max_element(parameter.values, {}, ToDouble));
  const std::vector<std::string> names = space.Names();
  auto size = expr.EvaluateInt(Bindings().Add(names, largest));
  if (!size) return Bad(key, size.error().ToString());
  if (*size < 1) return Bad(key, fmt::format("a size of {}", *size));
  return *size;
}

}  // namespace atunner::t1
