#include "atunner/intake/host/enclosing_conditions.h"

#include <algorithm>

namespace atunner {
namespace {

class Walk {
 public:
  Walk(const CudaSyntax& syntax, size_t place) : syntax_(syntax), place_(place) {}

  std::vector<EnclosingCondition> Run(TokenRange body) {
    for (std::optional<TokenRange> inner = body; inner;) inner = Statements(*inner);
    return std::move(found_);
  }

 private:
  bool Is(size_t i, std::string_view text) const {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
  }
  bool Holds(TokenRange range) const { return range.begin <= place_ && place_ < range.end; }

  /// The token after the statement that begins at `i`.
  size_t StatementEnd(size_t i, size_t end) const {
    while (i < end && (Is(i, "if") || Is(i, "for") || Is(i, "while") || Is(i, "switch"))) {
      const bool branches = Is(i, "if");
      i = std::min(MatchingClose(syntax_, Is(i + 1, "constexpr") ? i + 2 : i + 1) + 1, end);
      if (!branches) continue;
      i = StatementEnd(i, end);
      if (!Is(i, "else")) return i;
      ++i;
    }
    if (Is(i, "{")) return std::min(MatchingClose(syntax_, i) + 1, end);
    while (i < end && !Is(i, ";")) i = Opens(i) ? MatchingClose(syntax_, i) + 1 : i + 1;
    return std::min(i + 1, end);
  }
  bool Opens(size_t i) const { return Is(i, "(") || Is(i, "{") || Is(i, "["); }

  /// The block or branch of `range` that contains the place; nullopt if the place is in none of
  /// them.
  std::optional<TokenRange> Statements(TokenRange range) {
    for (size_t i = range.begin; i < range.end;) {
      const size_t paren = Is(i + 1, "constexpr") ? i + 2 : i + 1;
      if ((Is(i, "if") || Is(i, "switch")) && Is(paren, "(")) {
        const size_t close = MatchingClose(syntax_, paren);
        const TokenRange value{paren + 1, close},
            inside{close + 1, StatementBody(i, close, range.end)};
        if (Holds(inside)) return Is(i, "if") ? Branch(value, inside, true) : Cases(value, inside);
        i = std::max(inside.end, i + 1);
        if (!Is(i, "else")) continue;
        const TokenRange other{i + 1, StatementEnd(i + 1, range.end)};
        if (Holds(other)) return Branch(value, other, false);
        i = std::max(other.end, i + 1);
      } else if (Opens(i)) {
        const TokenRange inside{i + 1, MatchingClose(syntax_, i)};
        if (Holds(inside)) return inside;
        i = inside.end + 1;
      } else {
        ++i;
      }
    }
    return std::nullopt;
  }

  size_t StatementBody(size_t head, size_t close, size_t end) const {
    return Is(head, "switch") && Is(close + 1, "{") ? MatchingClose(syntax_, close + 1)
                                                    : StatementEnd(close + 1, end);
  }

  TokenRange Branch(TokenRange value, TokenRange inside, bool holds) {
    found_.push_back({value, {}, holds});
    return inside;
  }

  /// Notes the case labels that lead to the place: those after the last break or return before it.
  TokenRange Cases(TokenRange value, TokenRange inside) {
    EnclosingCondition here{value, {}, true}, others{value, {}, false};
    bool by_default = false, leaves = true;
    size_t behind = inside.begin + 1;  // the token after the labels
    for (size_t i = behind; i < inside.end; ++i) {
      if (Opens(i) && !Holds({i, MatchingClose(syntax_, i)})) {
        i = MatchingClose(syntax_, i);
      } else if (Is(i, "case") || Is(i, "default")) {
        const size_t label = i;
        while (i < inside.end && !Is(i, ":")) ++i;
        if (Is(label, "case")) others.cases.push_back({label + 1, i});
        if (label > place_) continue;
        if (leaves) here.cases.clear(), by_default = false;
        leaves = false;
        behind = i + 1;
        if (Is(label, "case")) here.cases.push_back({label + 1, i});
        by_default |= Is(label, "default");
      } else if (Is(i, "break") || Is(i, "return")) {
        leaves |= i < place_;
      }
    }
    if (!by_default && !here.cases.empty()) found_.push_back(here);
    if (by_default && here.cases.empty() && !others.cases.empty()) found_.push_back(others);
    return {behind, inside.end};
  }

  const CudaSyntax& syntax_;
  size_t place_;
  std::vector<EnclosingCondition> found_;
};

}  // namespace

std::vector<EnclosingCondition> ConditionsAround(const CudaSyntax& syntax, TokenRange body,
                                                 size_t place) {
  return Walk(syntax, place).Run(body);
}

}  // namespace atunner
