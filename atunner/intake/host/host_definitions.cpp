// Collects what a host function states before the place of a HostScope: definitions, allocations,
// containers.
#include <algorithm>
#include <utility>

#include "atunner/intake/c_type.h"
#include "atunner/intake/host/host_objects.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

bool IsOfCommandLine(const CudaSyntax& syntax, TokenRange value) {
  for (size_t i = value.begin; i < value.end; ++i) {
    if (syntax.token(i).Is("argv")) return true;
  }
  return false;
}

}  // namespace

void HostScope::Collect() {
  if (function_ >= syntax_.functions.size()) return;
  const TokenRange body = syntax_.functions[function_].body;
  const size_t end = std::min(position_, body.end);
  for (size_t i = body.begin; i < end; ++i) {
    const Token& token = syntax_.token(i);
    if (token.Is("[") && i > body.begin && syntax_.token(i - 1).Is("auto")) CollectBound(i, end);
    // auto& [a, b]
    if (token.Is("[") && i > body.begin && syntax_.token(i - 1).Is("&")) CollectBound(i, end);
    if (token.kind != Token::Kind::kWord || i + 1 >= end) continue;
    if (token.text.starts_with("cudaMalloc") && syntax_.token(i + 1).Is("(")) {
      CollectAllocation(i, end);
    } else if (token.text.starts_with("cudaMemset") && syntax_.token(i + 1).Is("(")) {
      CollectMemset(i, end);
    } else {
      CollectDefinition(i, end);
    }
  }
}

void HostScope::Define(const std::string& name, TokenRange value) {
  const auto [known, fresh] = definitions_.try_emplace(name, value);
  if (!fresh) redefined_[name].push_back(std::exchange(known->second, value));
}

/// The last definition whose conditions may hold.
std::optional<TokenRange> HostScope::Definition(const std::string& name) const {
  const auto last = definitions_.find(name);
  if (last == definitions_.end()) return std::nullopt;
  if (!IsRuledOut(last->second.begin - 2)) return last->second;  // its name's token
  const auto before = redefined_.find(name);
  for (size_t i = before == redefined_.end() ? 0 : before->second.size(); i-- > 0;) {
    if (!IsRuledOut(before->second[i].begin - 2)) return before->second[i];
  }
  return std::nullopt;
}

/// Forgets a variable that is changed by a statement such as `n *= 2;`, whose effect is not
/// followed.
void HostScope::Forget(size_t name) {
  const TokenRange object = ObjectBefore(syntax_, name);
  const size_t begin = object.empty() ? name : object.begin;
  const Token& before = syntax_.token(begin - 1);
  if (!before.Is(";") && !before.Is("{") && !before.Is("}") && !before.Is(")")) return;
  Define(ObjectText(syntax_, {begin, name + 1}), {begin, name + 1});
}

void HostScope::CollectDefinition(size_t name, size_t end) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < end && syntax_.token(i).Is(text);
  };
  const auto until = [&](size_t from) {  // end of the initialiser
    size_t i = from;
    while (i < end && !is(i, ";") && !is(i, ",") && !is(i, ")"))
      i = is(i, "(") || is(i, "{") || is(i, "[") ? MatchingClose(syntax_, i) + 1 : i + 1;
    return std::min(i, end);
  };
  const std::string text(syntax_.token(name).text);
  if (is(name + 1, "=")) {
    TokenRange value{name + 2, until(name + 2)};
    // a = b = 1024
    while (value.end > value.begin + 2 && is(value.begin + 1, "=")) value.begin += 2;
    if (value.empty()) return;
    // grid.x = …, this->n = …
    if (const TokenRange object = ObjectBefore(syntax_, name); !object.empty()) {
      // A value from the command line does not replace the default.
      const bool hidden = object.end == object.begin + 1 && is(object.begin, "this") &&
                          IsParameter(text);
      const std::string member = (hidden ? "this." : "") +
                                 ObjectText(syntax_, {object.begin, name + 1});
      if (!IsOfCommandLine(syntax_, value)) Define(member, value);
    } else if (!IsOfCommandLine(syntax_, value) ||
               !definitions_.contains(text)) {  // int n = 1024; if (argc > 1) n = …
      Define(text, value);
      CollectScalarType(name);
      CollectObject(name, end);
      // device_vector<float> d = h;
      if (name > 0 && is(name - 1, ">")) CollectContainer(text, name - 1, value);
    }
  } else if (is(name + 1, "[")) {  // float c[2] = {0.4f, 0.1f};
    size_t at = MatchingClose(syntax_, name + 1) + 1;
    if (is(at, "=")) ++at;
    if (is(at, "{")) lists_[text] = {at + 1, std::min(MatchingClose(syntax_, at), end)};
  } else if ((is(name + 1, "(") || is(name + 1, "{")) && name > 0) {
    const Token& before = syntax_.token(name - 1);
    const TokenRange inside{name + 2, std::min(MatchingClose(syntax_, name + 1), end)};
    const bool listed = before.Is(",");
    if (before.Is("dim3") || (listed && DeclaratorOf(name, "dim3"))) {
      definitions_[text] = inside;
    } else if (const auto angle = listed ? DeclaratorOf(name, ">") : std::optional(name - 1);
               angle && is(*angle, ">")) {  // thrust::device_vector<float> d(n), e(n);
      CollectContainer(text, *angle, inside);
    } else if (ParseCType(before.text)) {
      definitions_[text] = inside;  // int n(1024);
    }
    CollectObject(name, end);
  } else if (is(name + 1, ";") || is(name + 1, ",")) {
    CollectObject(name, end);
  }
  for (const std::string_view op : {"+=", "-=", "*=", "/=", "%=", "<<=", ">>="}) {
    if (name > 0 && is(name + 1, op)) Forget(name);
  }
  if (name > 1 && is(name - 1, "*")) CollectDeclaredType(name - 1);
}

std::vector<TokenRange> HostScope::ElementsOf(const std::string& name) const {
  const auto found = lists_.find(name);
  return found == lists_.end() ? std::vector<TokenRange>()
                               : SplitArguments(syntax_, found->second, true);
}

/// The value of sizes[i] for a list of the function.
Result<std::string> HostScope::Element(const std::string& list, const Tokens& index, int depth) {
  ATUNNER_TRY(const std::string place, Convert(index, depth + 1));
  ATUNNER_TRY(const Expr parsed, Expr::Parse(place));
  Dims values;
  for (const auto& [name, leaf] : *leaves_) values[name] = leaf.value;
  ATUNNER_TRY(const int64_t number, parsed.EvaluateInt(Bindings(values)));
  const std::vector<TokenRange> elements = ElementsOf(list);
  if (number < 0 || static_cast<size_t>(number) >= elements.size())
    return Invalid("'" + list + "' ends before");
  return Convert(Copy(elements[static_cast<size_t>(number)]), depth + 1);
}

void HostScope::CollectContainer(const std::string& name, size_t angle, TokenRange inside) {
  const std::vector<TokenRange> pieces = SplitArguments(syntax_, inside, true);
  if (pieces.empty()) return;
  containers_[name] = CountOf(pieces.front());
  size_t open = angle;
  while (open > 0 && !syntax_.token(open).Is("<")) --open;
  types_[name] = std::string(syntax_.Text({open + 1, angle}));
}

/// The number of elements of a container made from `range`: n, another container, or other.begin().
TokenRange HostScope::CountOf(TokenRange range) const {
  const auto other = containers_.find(syntax_.token(range.begin).text);
  const bool whole = range.begin + 1 == range.end || (syntax_.token(range.begin + 1).Is(".") &&
                                                      syntax_.token(range.begin + 2).Is("begin"));
  return other != containers_.end() && whole ? other->second : range;
}

/// The token of the type `type` in the declaration of a name that follows a comma:
/// dim3 block(16), grid(n / 16);
std::optional<size_t> HostScope::DeclaratorOf(size_t name, std::string_view type) const {
  const size_t begin = syntax_.functions[function_].body.begin;
  int nested = 0;
  for (size_t i = name; i > begin; --i) {
    const Token& token = syntax_.token(i - 1);
    if (token.Is(")") || token.Is("}")) ++nested;
    if ((token.Is("(") || token.Is("{")) && --nested < 0) return std::nullopt;
    if (nested == 0 && token.Is(type)) return i - 1;
    if (nested == 0 && token.Is(";")) return std::nullopt;
  }
  return std::nullopt;
}

/// Notes the type of a number, e.g. const int64_t n = 1024;
void HostScope::CollectScalarType(size_t name) {
  size_t begin = name;
  while (begin > 0 && syntax_.token(begin - 1).kind == Token::Kind::kWord &&
         !syntax_.token(begin - 1).Is("const") && !syntax_.token(begin - 1).Is("constexpr"))
    --begin;
  const std::string type(syntax_.Text({begin, name}));
  if (begin < name && ParseCType(type))
    types_.try_emplace(std::string(syntax_.token(name).text), type);
}

void HostScope::CollectDeclaredType(size_t star) {
  size_t begin = star;
  while (begin > 0 && syntax_.token(begin - 1).kind == Token::Kind::kWord) --begin;
  std::string type(syntax_.Text({begin, star}));
  if (const auto alias = syntax_.aliases.find(type); alias != syntax_.aliases.end())
    type = alias->second;
  const bool declares = begin > 0 && begin < star &&
                        (syntax_.token(begin - 1).Is(";") || syntax_.token(begin - 1).Is("{"));
  if (!ParseCType(type) && !declares) return;  // a multiplication, not a declaration
  types_.try_emplace(std::string(syntax_.token(star + 1).text), type);
  // float *a, *b, *c;
  for (size_t i = star + 2; i + 2 < syntax_.lexed.tokens.size() && syntax_.token(i).Is(",") &&
                            syntax_.token(i + 1).Is("*");
       i += 3) {
    types_.try_emplace(std::string(syntax_.token(i + 2).text), type);
  }
}

/// Notes an allocation: cudaMalloc(&d, bytes), cudaMalloc((void**)&d, bytes), cudaMallocManaged(&d,
/// bytes, flags) or cudaMallocPitch(&d, &pitch, bytes of a row, rows).
void HostScope::CollectAllocation(size_t call, size_t end) {
  const std::vector<TokenRange> pieces = SplitArguments(
      syntax_, {call + 2, std::min(MatchingClose(syntax_, call + 1), end)}, true);
  if (pieces.size() < 2) return;
  const std::string name = PointerText(pieces[0]);
  if (name.empty()) return;
  const bool pitched = syntax_.token(call).Is("cudaMallocPitch") && pieces.size() == 4;
  allocations_[name] = pieces[pitched ? 2 : 1];
  if (pitched)
    pitched_[name] = pieces[3],
    pitches_[std::string(syntax_.token(pieces[1].end - 1).text)] = pieces[2];
}

/// The pointer in `&d`, `(void**)&d->x`, `reinterpret_cast<void**>(&d)` or `&d[i]`: the last name,
/// with the object whose member it is.
std::string HostScope::PointerText(TokenRange range) const {
  size_t end = range.end;
  while (end > range.begin && syntax_.token(end - 1).kind != Token::Kind::kWord) {
    if (syntax_.token(end - 1).Is("]")) {
      while (end > range.begin && !syntax_.token(end - 1).Is("[")) --end;
    }
    if (end > range.begin) --end;
  }
  if (end == range.begin) return "";
  const TokenRange object = ObjectBefore(syntax_, end - 1);
  return ObjectText(syntax_, {object.empty() ? end - 1 : object.begin, end});
}

/// Notes a buffer that is zeroed by cudaMemset(d, 0, bytes) or cudaMemsetAsync.
void HostScope::CollectMemset(size_t call, size_t end) {
  const std::vector<TokenRange> pieces = SplitArguments(
      syntax_, {call + 2, std::min(MatchingClose(syntax_, call + 1), end)}, true);
  if (pieces.size() >= 3 && !pieces[0].empty() && syntax_.Text(pieces[1]) == "0")
    zeroed_.insert(PointerText(pieces[0]));
}

}  // namespace atunner
