#include "atunner/intake/cuda/class_members.h"

#include <algorithm>
#include <string>
#include <utility>

namespace atunner {
namespace {

constexpr int kMostNested = 8;  // depth of nested classes

class Members {
 public:
  Members(CudaSyntax& syntax, int depth) : syntax_(syntax), depth_(depth) {}

  void Run(TokenRange before, size_t brace) {
    size_t name = brace;  // class Name : public Base {
    for (size_t i = brace; i > before.begin && !Is(i, "struct") && !Is(i, "class"); --i) {
      if (Is(i, ":")) name = i;
    }
    while (name > before.begin && (Is(name - 1, "final") || Is(name - 1, ">"))) --name;
    if (name == 0 || !IsWord(name - 1) || depth_ > kMostNested) return;
    class_ = syntax_.token(name - 1).text;
    const size_t end = std::min(MatchingClose(syntax_, brace), Count());
    for (size_t i = brace + 1; i < end;) i = std::max(Member(i, end), i + 1);
  }

 private:
  size_t Count() const { return syntax_.lexed.tokens.size(); }
  bool Is(size_t i, std::string_view text) const {
    return i < Count() && syntax_.token(i).Is(text);
  }
  bool IsWord(size_t i) const { return i < Count() && syntax_.token(i).kind == Token::Kind::kWord; }

  /// Reads one member; returns the token after it.
  size_t Member(size_t begin, size_t end) {
    const auto access = [&](size_t i) {
      return Is(i, "public") || Is(i, "private") || Is(i, "protected");
    };
    if (access(begin) && Is(begin + 1, ":")) return begin + 2;
    if (syntax_.token(begin).kind == Token::Kind::kDirective || Is(begin, ";")) return begin + 1;
    size_t head = begin;
    while (Is(head, "template") && Is(head + 1, "<")) head = MatchingClose(syntax_, head + 1) + 1;
    bool device = false, host = false;
    size_t at = head;
    for (; at < end && !Is(at, ";") && !Is(at, "=") && !Is(at, "{"); ++at) {
      device |= Is(at, "__device__");
      host |= Is(at, "__host__");
      if (Is(at, "[")) at = MatchingClose(syntax_, at);
      if (!Is(at, "(")) continue;
      if (IsCallable(at, head)) return Function({begin, end}, head, at, device, host);
      at = MatchingClose(syntax_, at);
    }
    if (Is(at, "{") && (Is(head, "struct") || Is(head, "class")))
      Members(syntax_, depth_ + 1).Run({begin, head}, at);
    return std::min(Behind(at, end), end);
  }

  /// True for the parenthesis of a function's parameters, not for that of an attribute or of a
  /// pointer to a function.
  bool IsCallable(size_t open, size_t head) const {
    static constexpr std::string_view kAttributes[] = {
        "__align__",         "alignas",  "__attribute__", "decltype",
        "__launch_bounds__", "explicit", "noexcept"};
    if (open == head) return false;
    const Token& before = syntax_.token(open - 1);
    if (std::ranges::find(kAttributes, before.text) != std::end(kAttributes)) return false;
    if (Is(open - 1, "operator"))
      return false;  // operator()(…): the second pair has the parameters
    return before.kind == Token::Kind::kWord || IsOperator(open, head);
  }
  bool IsOperator(size_t open, size_t head) const {
    for (size_t i = open; i > head && i + 4 > open; --i) {
      if (Is(i - 1, "operator")) return true;
    }
    return false;
  }

  /// The token after the statement that continues at `at`.
  size_t Behind(size_t at, size_t end) const {
    while (at < end && !Is(at, ";")) {
      const bool opens = Is(at, "(") || Is(at, "[") || Is(at, "{");
      at = opens ? MatchingClose(syntax_, at) + 1 : at + 1;
    }
    return at + 1;
  }

  size_t Function(TokenRange range, size_t head, size_t open, bool device, bool host) {
    const auto [begin, end] = range;
    const size_t close = MatchingClose(syntax_, open);
    const TokenRange initialisers = InitialisersBehind(syntax_, close);
    size_t brace = initialisers.empty() ? close : initialisers.end;
    while (brace < end && !Is(brace, "{") && !Is(brace, ";") && !Is(brace, "=")) ++brace;
    if (!Is(brace, "{")) return Behind(brace, end);  // declared here, defaulted or deleted
    const size_t last = std::min(MatchingClose(syntax_, brace), end);
    HostFunction function{std::string(syntax_.token(open - 1).text),
                          {},
                          {open + 1, close},
                          {brace + 1, last},
                          {begin, std::min(last + 1, Count())},
                          class_,
                          device};
    if (head > begin) function.templates = ParseTemplateParameters(syntax_, {begin + 2, head - 1});
    // A conversion operator.
    if (!Is(open - 2, "operator") && IsOperator(open, head)) function.name = "operator";
    const bool destructor = Is(open - 2, "~");
    if (!destructor && (!device || host)) syntax_.functions.push_back(std::move(function));
    return last + 1;
  }

  CudaSyntax& syntax_;
  std::string class_;
  int depth_;
};

}  // namespace

void ReadClass(CudaSyntax& syntax, TokenRange before, size_t brace) {
  Members(syntax, 0).Run(before, brace);
}

}  // namespace atunner
