#include "atunner/intake/rewrite/device_lambdas.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/rewrite/source_edits.h"

namespace atunner {
namespace {

struct Lambda {
  TokenRange whole;       ///< from [ to }
  TokenRange captures;    ///< without [ and ]
  TokenRange parameters;  ///< with ( and )
  TokenRange result;      ///< the type after ->; may be empty
  TokenRange body;        ///< with { and }
};

class Namer {
 public:
  explicit Namer(const CudaSyntax& syntax) : syntax_(syntax), edits_(syntax) {}

  std::string Run() {
    for (const HostFunction& function : syntax_.functions) {
      // In a template the structure would have to be a template too.
      if (!function.templates.empty() || function.on_device) continue;
      for (size_t i = function.body.begin; i < function.body.end; ++i) {
        const auto lambda = LambdaAt(i, function.body.end);
        if (!lambda || !Write(*lambda, function)) continue;
        i = lambda->whole.end - 1;
      }
    }
    return edits_.empty() ? std::string(syntax_.source) : edits_.Apply();
  }

 private:
  bool Is(size_t i, std::string_view text) const {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
  }
  bool IsWord(size_t i) const {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).kind == Token::Kind::kWord;
  }

  /// The lambda whose [ is at `open`: [=] __device__ (int i) -> float { … }. Any words may stand in
  /// place of __device__, since they may be macros for it.
  std::optional<Lambda> LambdaAt(size_t open, size_t end) const {
    if (!Is(open, "[") || open == 0 || IsWord(open - 1) || Is(open - 1, "]") || Is(open - 1, ")"))
      return std::nullopt;
    Lambda lambda;
    const size_t close = MatchingClose(syntax_, open);
    lambda.captures = {open + 1, close};
    size_t at = close + 1;
    while (IsWord(at)) ++at;
    if (at == close + 1 || !Is(at, "(")) return std::nullopt;
    lambda.parameters = {at, MatchingClose(syntax_, at) + 1};
    at = lambda.parameters.end;
    if (Is(at, "->")) {
      const size_t type = at + 1;
      while (at < end && !Is(at, "{")) ++at;
      lambda.result = {type, at};
    }
    if (!Is(at, "{")) return std::nullopt;
    lambda.body = {at, MatchingClose(syntax_, at) + 1};
    lambda.whole = {open, lambda.body.end};
    return lambda.whole.end <= end ? std::optional(lambda) : std::nullopt;
  }

  /// Members and values of the structure: the function's variables that the body uses. False if the
  /// type of one is unknown.
  bool Captures(const Lambda& lambda, const HostFunction& function, std::string& members,
                std::string& values) const {
    std::set<std::string_view> seen;
    for (size_t i = lambda.body.begin; i < lambda.body.end; ++i) {
      const std::string_view name = syntax_.token(i).text;
      const bool member = Is(i - 1, ".") || Is(i - 1, "->") || Is(i - 1, "::");
      if (!IsWord(i) || member || !seen.insert(name).second) continue;
      const auto type = DeclaredType(name, function, lambda.whole.begin);
      if (!type) continue;  // not a variable of the function
      if (type->empty()) return false;
      members += fmt::format("{}{}; ", *type, name);
      values += (values.empty() ? "" : ", ") + std::string(name);
    }
    return true;
  }

  bool Write(const Lambda& lambda, const HostFunction& function) {
    for (size_t i = lambda.captures.begin; i < lambda.captures.end; ++i) {
      if (Is(i, "&") || Is(i, "this") || (Is(i, "=") && i > lambda.captures.begin)) return false;
    }
    std::string members, values;
    if (!Captures(lambda, function, members, values)) return false;
    const int line = syntax_.token(lambda.body.begin).line,
              back = syntax_.token(function.outermost).line;
    const std::string name = fmt::format("Lambda_{}_{}", line, ++count_);
    const std::string result(lambda.result.empty() ? "auto" : syntax_.Text(lambda.result));
    edits_.Insert(
        function.outermost,
        fmt::format("struct {} {{ {}__device__ {} operator(){}\n#line {}\nconst {} }};\n#line {}\n",
                    name, members, result, syntax_.Text(lambda.parameters), line,
                    syntax_.Text(lambda.body), back));
    edits_.Replace(lambda.whole, fmt::format("{}{{{}}}", name, values));
    return true;
  }

  /// The declared type of a variable or parameter of the function; "" if it is `auto`, nullopt if
  /// the name is not declared there.
  std::optional<std::string> DeclaredType(std::string_view name, const HostFunction& function,
                                          size_t before) const {
    for (const TokenRange range : {TokenRange{function.body.begin, before}, function.parameters}) {
      for (size_t i = range.begin; i < range.end; ++i) {
        if (!Is(i, name) || !IsWord(i) || IsWord(i + 1) || Is(i + 1, "*") || Is(i + 1, "<") ||
            Is(i + 1, "::"))
          continue;
        if (auto type = TypeBefore(i, range.begin)) return type;
      }
    }
    return std::nullopt;
  }

  /// First token of the statement or parameter that contains the token before `at`.
  size_t StatementBegin(size_t at, size_t least) const {
    size_t begin = at;
    int nested = 0;
    while (begin > least) {
      const size_t i = begin - 1;
      nested += (Is(i, ")") || Is(i, "}") || Is(i, "]")) - (Is(i, "(") || Is(i, "{") || Is(i, "["));
      if (nested < 0 || (nested == 0 && (Is(i, ";") || Is(i, "}")))) break;
      begin = i;
    }
    return begin;
  }

  /// The words of a type from token `i` on, which is moved behind them, without `static` and the
  /// like; "" if they are not a declaration.
  std::string TypeWords(size_t& i, size_t end) const {
    std::string type;
    for (; i < end && (IsWord(i) || Is(i, "::")); ++i) {
      if (Is(i, "return") || Is(i, "else") || Is(i, "case") || Is(i, "delete") || Is(i, "goto"))
        return "";
      if (Is(i, "static") || Is(i, "constexpr") || Is(i, "struct")) continue;
      type += std::string(syntax_.token(i).text) + (Is(i, "::") || Is(i + 1, "::") ? "" : " ");
      if (!Is(i + 1, "<")) continue;
      const size_t close = MatchingClose(syntax_, i + 1);
      if (close >= end) return "";
      type += syntax_.Text({i + 1, close + 1});
      i = close;
    }
    return type;
  }

  /// The type in the declaration of the name at token `name`, e.g. `const float *a, *name = …`.
  std::optional<std::string> TypeBefore(size_t name, size_t least) const {
    std::string stars;
    size_t at = name;
    while (at > least && (Is(at - 1, "*") || Is(at - 1, "__restrict__") || Is(at - 1, "&"))) {
      if (Is(--at, "*")) stars += '*';
    }
    size_t i = StatementBegin(at, least);
    std::string type = TypeWords(i, at);
    if (type.empty()) return std::nullopt;
    if (i < at) {  // other names of the declaration come first
      // In `T a, b` the last word was a name, in `T *a, b` not.
      const bool starred = Is(i, "*");
      if (!starred) type = type.substr(0, type.find_last_of(' ', type.size() - 2) + 1);
      if (type.empty() || !Is(at - 1, ",")) return std::nullopt;
    }
    if (type == "const ") return std::nullopt;
    if (type.starts_with("auto ") || type.starts_with("const auto ")) return "";
    return type + stars;
  }

  const CudaSyntax& syntax_;
  Edits edits_;
  int count_ = 0;
};

}  // namespace

std::string WithLambdasNamed(const std::string& source) {
  const CudaSyntax syntax = ParseCuda(source);
  return Namer(syntax).Run();
}

}  // namespace atunner
