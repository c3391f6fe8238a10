#include "atunner/intake/bare/device_symbols.h"

#include <algorithm>
#include <set>

namespace atunner {
namespace {

bool IsQualifier(std::string_view word) {
  static const std::set<std::string_view> kQualifiers = {
      "__constant__", "__device__", "static", "const", "volatile", "extern", "inline", "__align__"};
  return kQualifiers.contains(word);
}

/// The mangled name: a::b::c becomes _ZN1a1b1cE.
std::string SymbolOf(const CudaSyntax& syntax, size_t declaration, const std::string& name) {
  const NamespaceBody* around = syntax.NamespaceAt(declaration);
  if (around == nullptr || around->path.empty()) return name;
  std::string symbol = "_ZN";
  for (const Token& token : Lex(around->path).tokens) {
    if (token.kind == Token::Kind::kWord)
      symbol += std::to_string(token.text.size()) + std::string(token.text);
  }
  return symbol + std::to_string(name.size()) + name + "E";
}

/// Reads the variable whose name is at token `at`, which is moved to the "," or ";" behind it, or
/// to a
/// "(". `begin` is the start of the declaration.
DeviceVariable Declarator(const CudaSyntax& syntax, size_t begin, const std::string& type,
                          size_t& at) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax.lexed.tokens.size() && syntax.token(i).Is(text);
  };
  const std::string name(syntax.token(at).text);
  DeviceVariable one{name, SymbolOf(syntax, begin, name), type,
                     {},   is(begin, "__constant__"),     false};
  for (++at; is(at, "["); at = MatchingClose(syntax, at) + 1)
    one.extents.push_back({at + 1, MatchingClose(syntax, at)});
  one.initialised = is(at, "=") || is(at, "{");
  while (at < syntax.lexed.tokens.size() && !is(at, ",") && !is(at, ";") && !is(at, "("))
    at = is(at, "{") ? MatchingClose(syntax, at) + 1 : at + 1;
  return one;
}

/// Adds the variables of a declaration that begins with a memory qualifier at `begin`, e.g.
/// __constant__ float a[3], b;
void Declared(const CudaSyntax& syntax, size_t begin, std::vector<DeviceVariable>& out) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax.lexed.tokens.size() && syntax.token(i).Is(text);
  };
  const auto word = [&](size_t i) {
    return i < syntax.lexed.tokens.size() && syntax.token(i).kind == Token::Kind::kWord;
  };
  size_t at = begin;
  while (word(at) && IsQualifier(syntax.token(at).text))
    at = is(at + 1, "(") ? MatchingClose(syntax, at + 1) + 1 : at + 1;
  const size_t type = at;
  while (word(at) && word(at + 1)) ++at;
  if (!word(at) || at == type) return;
  const std::string type_text(syntax.Text({type, at}));
  std::vector<DeviceVariable> found;
  while (word(at)) {
    found.push_back(Declarator(syntax, begin, type_text, at));
    if (is(at, "(")) return;  // the declaration is a function
    if (!is(at, ",")) break;
    ++at;
  }
  out.insert(out.end(), found.begin(), found.end());
}

bool Within(size_t i, TokenRange range) { return i >= range.begin && i < range.end; }

/// True for a token in host code or in another kernel.
bool IsElsewhere(const CudaSyntax& syntax, const KernelDefinition& kernel, size_t i) {
  return std::ranges::any_of(syntax.host_only,
                             [&](TokenRange range) { return Within(i, range); }) ||
         std::ranges::any_of(
             syntax.functions,
             [&](const HostFunction& f) { return !f.on_device && Within(i, f.whole); }) ||
         std::ranges::any_of(syntax.kernels, [&](const KernelDefinition& k) {
           return &k != &kernel && Within(i, k.body);
         });
}

}  // namespace

std::vector<DeviceVariable> VariablesOf(const CudaSyntax& syntax, const KernelDefinition& kernel) {
  std::vector<DeviceVariable> all;
  std::set<std::string, std::less<>> used;
  for (size_t i = 0; i < syntax.lexed.tokens.size(); ++i) {
    if (IsElsewhere(syntax, kernel, i)) continue;
    const Token& token = syntax.token(i);
    if (token.Is("__constant__") || token.Is("__device__")) {
      const size_t before = all.size();
      Declared(syntax, i, all);
      if (all.size() > before) {
        while (i < syntax.lexed.tokens.size() && !syntax.token(i).Is(";")) ++i;
        continue;
      }
    }
    if (token.kind == Token::Kind::kWord) used.emplace(token.text);
    if (token.kind == Token::Kind::kDirective) {  // e.g. #define AT(i) table[i]
      for (const DeviceVariable& one : all) {
        if (token.text.find(one.name) != std::string_view::npos) used.insert(one.name);
      }
    }
  }
  std::erase_if(all, [&](const DeviceVariable& one) { return !used.contains(one.name); });
  return all;
}

}  // namespace atunner
