#include "atunner/intake/rewrite/macro_launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/rewrite/source_edits.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

constexpr int kMostRounds = 16;                       // depth of macros in macros
constexpr size_t kLargestExpanded = size_t{4} << 20;  // bytes; nested macros may grow exponentially

struct Macro {
  std::vector<std::string> parameters;  ///< the last one of a variadic macro is __VA_ARGS__
  std::string body;
};
using Macros = std::map<std::string, Macro, std::less<>>;

bool Follows(const Token& token, const Token& before) {
  return before.offset + before.text.size() == token.offset;
}

std::string Quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return '"' + quoted + '"';
}

/// The macro of `#define LAUNCH(kernel, grid, ...) body`; nullopt for other directives.
std::optional<std::pair<std::string, Macro>> DefinitionIn(const Token& directive) {
  const std::string line = Trim(directive.text.substr(1));
  if (!line.starts_with("define")) return std::nullopt;
  const std::vector<Token> tokens = Lex(line).tokens;
  if (tokens.size() < 4 || !tokens[2].Is("(") || !Follows(tokens[2], tokens[1]))
    return std::nullopt;
  Macro macro;
  size_t i = 3;
  for (; i < tokens.size() && !tokens[i].Is(")"); ++i) {
    if (tokens[i].kind == Token::Kind::kWord) macro.parameters.emplace_back(tokens[i].text);
    if (!tokens[i].Is("...")) continue;
    if (!tokens[i - 1].Is("(") && !tokens[i - 1].Is(",")) macro.parameters.pop_back();  // args...
    macro.parameters.emplace_back("__VA_ARGS__");
  }
  if (i + 1 >= tokens.size()) return std::nullopt;
  macro.body = line.substr(tokens[i + 1].offset);
  for (size_t at = 0; (at = macro.body.find("\\\n", at)) != std::string::npos;)
    macro.body.replace(at, 2, " ");
  return std::pair(std::string(tokens[1].text), std::move(macro));
}

Macros MacrosOf(const CudaSyntax& syntax) {
  Macros all;
  for (const Token& token : syntax.lexed.tokens) {
    if (token.kind != Token::Kind::kDirective) continue;
    if (auto macro = DefinitionIn(token)) all.insert(*std::move(macro));
  }
  return all;
}

/// The macros with parameters that contain a launch or a kernel, directly or through another macro.
Macros LaunchingMacros(const CudaSyntax& syntax) {
  const Macros all = MacrosOf(syntax);
  Macros launching;
  for (size_t before = SIZE_MAX; before != launching.size();) {
    before = launching.size();
    for (const auto& [name, macro] : all) {
      const std::vector<Token> words = Lex(macro.body).tokens;
      // A macro is not expanded inside itself.
      const auto named = [&](const Token& t) { return t.Is(name); };
      if (std::ranges::any_of(words, named)) continue;
      const bool calls = std::ranges::any_of(
          words, [&](const Token& t) { return launching.contains(t.text); });
      const bool launches = macro.body.find("<<<") != std::string::npos ||
                            macro.body.find("__global__") != std::string::npos ||
                            macro.body.find("cudaLaunch") != std::string::npos;
      if (calls || launches) launching.insert({name, macro});
    }
  }
  return launching;
}

class Expander {
 public:
  explicit Expander(const CudaSyntax& syntax)
      : syntax_(syntax), macros_(LaunchingMacros(syntax)), edits_(syntax) {}

  std::optional<std::string> Run() {
    const size_t count = syntax_.lexed.tokens.size();
    size_t size = 0;
    for (size_t i = 0; !macros_.empty() && i + 1 < count && size < kLargestExpanded; ++i) {
      const auto macro = macros_.find(syntax_.token(i).text);
      if (macro == macros_.end() || !syntax_.token(i + 1).Is("(")) continue;
      const size_t close = Close(i + 1);
      if (close >= count) continue;
      const std::string text = Expanded(macro->second, Arguments({i + 2, close}, macro->second));
      size += text.size();
      edits_.Replace({i, close + 1}, text);
      i = close;
    }
    return edits_.empty() ? std::nullopt : std::optional(edits_.Apply());
  }

 private:
  /// The ")" that closes the "(" at `open`. For the preprocessor [] and {} are not brackets.
  size_t Close(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < syntax_.lexed.tokens.size(); ++i) {
      depth += syntax_.token(i).Is("(") - syntax_.token(i).Is(")");
      if (depth == 0) return i;
    }
    return syntax_.lexed.tokens.size();
  }

  std::vector<std::string> Arguments(TokenRange range, const Macro& macro) const {
    std::vector<std::string> all;
    size_t start = range.begin;
    int depth = 0;
    for (size_t i = range.begin; i < range.end; ++i) {
      const Token& token = syntax_.token(i);
      depth += token.Is("(") - token.Is(")");
      const bool rest = all.size() + 1 == macro.parameters.size() &&
                        macro.parameters.back() == "__VA_ARGS__";
      if (depth != 0 || !token.Is(",") || rest) continue;
      all.push_back(OnOneLine({start, i}));
      start = i + 1;
    }
    if (start < range.end) all.push_back(OnOneLine({start, range.end}));
    return all;
  }

  /// The text of the tokens on one line, without comments.
  std::string OnOneLine(TokenRange range) const {
    std::string text;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (i > range.begin && !Follows(syntax_.token(i), syntax_.token(i - 1))) text += ' ';
      text += syntax_.token(i).text;
    }
    return text;
  }

  static std::string Expanded(const Macro& macro, const std::vector<std::string>& arguments) {
    const auto value = [&](const Token& token) -> std::optional<std::string> {
      const auto found = std::ranges::find(macro.parameters, token.text);
      if (token.kind != Token::Kind::kWord || found == macro.parameters.end()) return std::nullopt;
      const auto index = static_cast<size_t>(found - macro.parameters.begin());
      return index < arguments.size() ? arguments[index] : "";
    };
    const std::vector<Token> tokens = Lex(macro.body).tokens;
    std::string out;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool glued = i > 0 && (tokens[i - 1].Is("##") || Follows(tokens[i], tokens[i - 1]));
      if (i > 0 && !glued && !tokens[i].Is("##")) out += ' ';
      if (tokens[i].Is("##")) {
        const bool empty = i + 1 < tokens.size() && tokens[i + 1].Is("__VA_ARGS__") &&
                           value(tokens[i + 1])->empty();
        if (empty && out.ends_with(",")) out.pop_back();
      } else if (tokens[i].Is("#") && i + 1 < tokens.size() && value(tokens[i + 1])) {
        out += Quoted(*value(tokens[++i]));
      } else {
        out += value(tokens[i]).value_or(std::string(tokens[i].text));
      }
    }
    return out;
  }

  const CudaSyntax& syntax_;
  Macros macros_;
  Edits edits_;
};

}  // namespace

std::string WithLaunchesExpanded(const std::string& source) {
  std::string text = source;
  for (int round = 0; round < kMostRounds && text.size() < kLargestExpanded; ++round) {
    const CudaSyntax syntax = ParseCuda(text);
    auto next = Expander(syntax).Run();
    if (!next) break;
    text = *std::move(next);
  }
  return text;
}

}  // namespace atunner
