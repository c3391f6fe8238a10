// Values that host expressions take from objects.
#include <algorithm>

#include "atunner/intake/host/host_objects.h"
#include "atunner/model/expr/expr.h"

namespace atunner {

TokenRange BareObject(const CudaSyntax& syntax, TokenRange range) {
  while (!range.empty()) {
    const Token& first = syntax.token(range.begin);
    if (first.Is("&") || first.Is("*") || first.Is("new")) {
      ++range.begin;
      continue;
    }
    if (!first.Is("(")) break;
    const size_t close = MatchingClose(syntax, range.begin);
    if (close + 1 == range.end) {
      range = {range.begin + 1, close};
    } else if (close + 1 < range.end && syntax.token(close - 1).Is("*")) {  // (float*)x
      range.begin = close + 1;
    } else {
      break;
    }
  }
  return range;
}

std::string ObjectText(const CudaSyntax& syntax, TokenRange range) {
  std::string text;
  for (size_t i = range.begin; i < range.end; ++i)
    text += syntax.token(i).Is("->") ? std::string(".") : std::string(syntax.token(i).text);
  return text.starts_with("this.") ? text.substr(5) : text;
}

TokenRange ObjectBefore(const CudaSyntax& syntax, size_t name) {
  const auto is = [&](size_t i, std::string_view text) { return syntax.token(i).Is(text); };
  if (name < 2 || (!is(name - 1, ".") && !is(name - 1, "->"))) return {};
  size_t begin = name - 1;
  while (begin > 0) {
    size_t at = begin - 1;  // last token of one part
    while (at > 0 && (is(at, ")") || is(at, "]"))) {
      int nested = 0;
      do {
        nested += (is(at, ")") || is(at, "]")) - (is(at, "(") || is(at, "["));
      } while (nested > 0 && at-- > 0);
      if (at > 0 && syntax.token(at - 1).kind == Token::Kind::kWord) --at;
    }
    begin = at;
    if (begin == 0 || !(is(begin - 1, ".") || is(begin - 1, "->") || is(begin - 1, "::"))) break;
    --begin;
  }
  return {begin, name - 1};
}

bool Accepts(const CudaSyntax& syntax, const HostFunction& function, size_t arguments) {
  const std::vector<TokenRange> parameters = SplitArguments(syntax, function.parameters, true);
  if (parameters.size() == 1 && syntax.Text(parameters[0]) == "void") return arguments == 0;
  if (parameters.size() < arguments) return false;
  for (size_t p = arguments; p < parameters.size(); ++p) {
    bool optional = false;
    for (size_t i = parameters[p].begin; i < parameters[p].end; ++i)
      optional |= syntax.token(i).Is("=");
    if (!optional) return false;
  }
  return true;
}

bool Copies(const CudaSyntax& syntax, const HostFunction& function) {
  const std::vector<TokenRange> parameters = SplitArguments(syntax, function.parameters, true);
  if (parameters.size() != 1) return false;
  bool same = false, reference = false;
  for (size_t i = parameters[0].begin; i < parameters[0].end; ++i) {
    same |= syntax.token(i).Is(function.of_class);
    reference |= syntax.token(i).Is("&") || syntax.token(i).Is("&&");
  }
  return same && reference;
}

/// The range of an expression's tokens in the source; nullopt if they do not come from one range.
std::optional<TokenRange> HostScope::RangeOf(const Tokens& tokens, size_t begin, size_t end) const {
  const std::vector<Token>& all = syntax_.lexed.tokens;
  if (begin >= end || end > tokens.size()) return std::nullopt;
  const char* text = tokens[begin].text.data();
  if (text < syntax_.source.data() || text >= syntax_.source.data() + syntax_.source.size())
    return std::nullopt;
  const auto first = std::ranges::lower_bound(all, tokens[begin].offset, {}, &Token::offset);
  const auto at = static_cast<size_t>(first - all.begin());
  if (at + (end - begin) > all.size()) return std::nullopt;
  for (size_t i = begin; i < end; ++i) {
    if (all[at + i - begin].text.data() != tokens[i].text.data()) return std::nullopt;
  }
  return TokenRange{at, at + end - begin};
}

/// The value of `object.member`, `object.function(…)` or `function(…)`.
Result<std::string> HostScope::MemberValue(const Tokens& tokens, size_t begin, size_t end,
                                           int depth) {
  std::string words, last;
  for (size_t i = begin; i < end; ++i) {
    if (tokens[i].Is("(")) break;
    if (tokens[i].kind != Token::Kind::kWord || tokens[i].Is("this")) continue;
    last = tokens[i].text;
    words += (words.empty() ? "" : "_") + last;
  }
  if (stated_.contains(words)) return NameValue(words, depth);
  const auto range = RangeOf(tokens, begin, end);
  const auto found = range ? MemberOf(*range, {}, depth) : std::nullopt;
  if (!found || !found->allocation.empty()) return UnknownVariable(words);
  unknown_->clear();
  auto value = ValueFound(*found, last, depth);
  if (!value && unknown_->empty()) return UnknownVariable(words);
  return value;
}

/// The value of a found expression; a literal becomes a leaf called `name`.
Result<std::string> HostScope::ValueFound(const Found& found, const std::string& name, int depth) {
  ATUNNER_TRY(const std::string value,
              found.scope->Convert(found.scope->Copy(found.range), depth + 1));
  ATUNNER_TRY(const Expr parsed, Expr::Parse(value));
  if (!parsed.Names().empty()) return "(" + value + ")";
  const auto number = parsed.EvaluateInt({});
  return number && *number >= 1 ? KeptAsLeaf(name, *number, false) : "(" + value + ")";
}

/// The name of the leaf, or the value itself if the name already has another value.
std::string HostScope::KeptAsLeaf(const std::string& name, int64_t value, bool of_file) {
  const auto [leaf, fresh] = leaves_->try_emplace(name, Leaf{name, value, of_file});
  return fresh || leaf->second.value == value ? name : "(" + std::to_string(value) + ")";
}

Result<std::array<std::string, 3>> HostScope::ExtentsOfMember(TokenRange object,
                                                              const std::string& member) {
  Begin();
  std::array<std::string, 3> extents = {"1", "1", "1"};
  bool known = false;
  if (const auto whole = MemberOf(object, {member}, 0)) {
    ATUNNER_TRY(extents, whole->scope->ExtentsOf(whole->scope->Copy(whole->range), 0));
    known = true;
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto one = MemberOf(object, {member, std::string(1, "xyz"[axis])}, 0);
    if (!one) continue;
    ATUNNER_TRY(extents[axis], one->scope->Convert(one->scope->Copy(one->range), 0));
    known = true;
  }
  if (!known) return Invalid("the value of '" + member + "' is not known");
  return extents;
}
}  // namespace atunner
