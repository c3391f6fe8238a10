#include "atunner/intake/host_scope.h"

#include <algorithm>
#include <set>

#include "atunner/intake/c_type.h"
#include "atunner/model/expr.h"

namespace atunner {
namespace {

constexpr int kMostNested = 24;
constexpr int kMostCallers = 3;
constexpr char kSlash = '\x01';  // a division whose kind is decided when the whole expression is known

std::unexpected<Error> Unknown(std::string_view what) {
  return Invalid("the value of '" + std::string(what) + "' is not known");
}

/// A C++ number as Python writes it; `real` is set for floating point.
std::string NumberText(std::string_view token, bool& real) {
  std::string text;
  for (const char c : token) {
    if (c != '\'') text += c;
  }
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (!hex && text.find_first_of(".eE") != std::string::npos) real = true;
  const char* suffixes = hex ? "uUlL" : "uUlLfF";
  if (!hex && (text.back() == 'f' || text.back() == 'F')) real = true;
  while (text.size() > 1 && std::string_view(suffixes).find(text.back()) != std::string_view::npos) text.pop_back();
  if (text.back() == '.') text += '0';
  return text;
}

bool IsCeilDiv(std::string name) {
  std::erase(name, '_');
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::set<std::string_view> kNames = {"ceildiv", "cdiv",       "divup",      "idivup",
                                                    "divceil", "divroundup", "ceildivide", "updiv"};
  return kNames.contains(name);
}

}  // namespace

struct HostScope::Pieces {
  std::string text;
  bool real = false;

  void Add(std::string_view piece) {
    if (!text.empty()) text += ' ';
    text += piece;
  }
};

HostScope::HostScope(const CudaSyntax& syntax, size_t function, size_t position, const Dims& stated)
    : syntax_(syntax),
      function_(function),
      position_(position),
      stated_(stated),
      leaves_(std::make_shared<std::map<std::string, Leaf, std::less<>>>()),
      unknown_(std::make_shared<std::string>()),
      texts_(std::make_shared<std::deque<std::string>>()) {
  Collect();
}

HostScope::HostScope(const HostScope& parent, size_t function, size_t position, int level)
    : syntax_(parent.syntax_),
      function_(function),
      position_(position),
      stated_(parent.stated_),
      level_(level),
      leaves_(parent.leaves_),
      unknown_(parent.unknown_),
      texts_(parent.texts_) {
  Collect();
}

// --- what the function says before the launch ---

void HostScope::Collect() {
  if (function_ >= syntax_.functions.size()) return;
  const TokenRange body = syntax_.functions[function_].body;
  const size_t end = std::min(position_, body.end);
  for (size_t i = body.begin; i < end; ++i) {
    const Token& token = syntax_.token(i);
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

void HostScope::CollectDefinition(size_t name, size_t end) {
  const auto is = [&](size_t i, std::string_view text) { return i < end && syntax_.token(i).Is(text); };
  const auto until = [&](size_t from) {  // the end of an initialiser
    size_t i = from;
    while (i < end && !is(i, ";") && !is(i, ",") && !is(i, ")"))
      i = is(i, "(") || is(i, "{") || is(i, "[") ? MatchingClose(syntax_, i) + 1 : i + 1;
    return std::min(i, end);
  };
  const std::string text(syntax_.token(name).text);
  if (is(name + 1, "=")) {
    const TokenRange value{name + 2, until(name + 2)};
    if (name > 0 && is(name - 1, ".") && name > 1) {  // grid.x = …
      const size_t axis = text == "x" ? 0 : text == "y" ? 1 : 2;
      members_[std::string(syntax_.token(name - 2).text)][axis] = value;
    } else {
      definitions_[text] = value;
      if (name > 0 && is(name - 1, ">")) CollectContainer(text, name - 1, value);  // device_vector<float> d = h;
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
  }
  if (name > 1 && is(name - 1, "*")) CollectDeclaredType(name - 1);
}

std::vector<TokenRange> HostScope::ElementsOf(const std::string& name) const {
  const auto found = lists_.find(name);
  return found == lists_.end() ? std::vector<TokenRange>() : SplitArguments(syntax_, found->second, true);
}

void HostScope::CollectContainer(const std::string& name, size_t angle, TokenRange inside) {
  const std::vector<TokenRange> pieces = SplitArguments(syntax_, inside, true);
  if (pieces.empty()) return;
  containers_[name] = CountOf(pieces.front());
  size_t open = angle;
  while (open > 0 && !syntax_.token(open).Is("<")) --open;
  types_[name] = std::string(syntax_.Text({open + 1, angle}));
}

/// How many elements a container made from `range` has: n, another container, or other.begin().
TokenRange HostScope::CountOf(TokenRange range) const {
  const auto other = containers_.find(syntax_.token(range.begin).text);
  const bool whole = range.begin + 1 == range.end ||
                     (syntax_.token(range.begin + 1).Is(".") && syntax_.token(range.begin + 2).Is("begin"));
  return other != containers_.end() && whole ? other->second : range;
}

/// The token `type` of the statement that declares the name, which follows a comma: dim3 block(16), grid(n / 16);
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

void HostScope::CollectDeclaredType(size_t star) {
  size_t begin = star;
  while (begin > 0 && syntax_.token(begin - 1).kind == Token::Kind::kWord) --begin;
  std::string type(syntax_.Text({begin, star}));
  if (const auto alias = syntax_.aliases.find(type); alias != syntax_.aliases.end()) type = alias->second;
  if (ParseCType(type)) types_.try_emplace(std::string(syntax_.token(star + 1).text), type);
  // float *a, *b, *c;
  for (size_t i = star + 2;
       i + 2 < syntax_.lexed.tokens.size() && syntax_.token(i).Is(",") && syntax_.token(i + 1).Is("*"); i += 3) {
    if (ParseCType(type)) types_.try_emplace(std::string(syntax_.token(i + 2).text), type);
  }
}

/// cudaMalloc(&d, bytes), cudaMalloc((void**)&d, bytes), cudaMallocManaged(&d, bytes, flags)
void HostScope::CollectAllocation(size_t call, size_t end) {
  const std::vector<TokenRange> pieces =
      SplitArguments(syntax_, {call + 2, std::min(MatchingClose(syntax_, call + 1), end)}, true);
  if (pieces.size() < 2) return;
  for (size_t i = pieces[0].end; i > pieces[0].begin; --i) {
    if (syntax_.token(i - 1).kind != Token::Kind::kWord) continue;
    allocations_[std::string(syntax_.token(i - 1).text)] = pieces[1];
    return;
  }
}

/// cudaMemset(d, 0, bytes), cudaMemsetAsync(d, 0, bytes, stream)
void HostScope::CollectMemset(size_t call, size_t end) {
  const std::vector<TokenRange> pieces =
      SplitArguments(syntax_, {call + 2, std::min(MatchingClose(syntax_, call + 1), end)}, true);
  if (pieces.size() >= 3 && pieces[0].end > pieces[0].begin && syntax_.Text(pieces[1]) == "0")
    zeroed_.emplace(syntax_.token(pieces[0].end - 1).text);
}

std::optional<std::pair<std::unique_ptr<HostScope>, TokenRange>> HostScope::InCaller(const std::string& name) const {
  if (function_ >= syntax_.functions.size() || level_ >= kMostCallers) return std::nullopt;
  const HostFunction& function = syntax_.functions[function_];
  const std::vector<TokenRange> parameters = SplitArguments(syntax_, function.parameters, true);
  for (size_t p = 0; p < parameters.size(); ++p) {
    size_t last = parameters[p].end;
    for (size_t i = parameters[p].begin; i < parameters[p].end; ++i) {
      if (syntax_.token(i).Is("=")) last = std::min(last, i);
    }
    if (last == parameters[p].begin || syntax_.token(last - 1).text != name) continue;
    for (size_t f = 0; f < syntax_.functions.size(); ++f) {
      if (f == function_) continue;
      const TokenRange body = syntax_.functions[f].body;
      for (size_t i = body.begin; i + 1 < body.end; ++i) {
        if (!syntax_.token(i).Is(function.name)) continue;
        size_t open = i + 1;
        if (syntax_.token(open).Is("<")) open = MatchingClose(syntax_, open) + 1;
        if (open >= body.end || !syntax_.token(open).Is("(")) continue;
        const auto arguments = SplitArguments(syntax_, {open + 1, MatchingClose(syntax_, open)}, true);
        if (p >= arguments.size()) continue;
        return std::pair(std::unique_ptr<HostScope>(new HostScope(*this, f, i, level_ + 1)), arguments[p]);
      }
    }
    if (last < parameters[p].end)  // a default argument
      return std::pair(std::unique_ptr<HostScope>(new HostScope(*this, SIZE_MAX, 0, level_ + 1)),
                       TokenRange{last + 1, parameters[p].end});
  }
  return std::nullopt;
}

// --- expressions ---

HostScope::Tokens HostScope::Copy(TokenRange range) const {
  Tokens tokens;
  for (size_t i = range.begin; i < std::min(range.end, syntax_.lexed.tokens.size()); ++i)
    tokens.push_back(syntax_.token(i));
  return tokens;
}

Result<std::string> HostScope::Expression(TokenRange range) {
  unknown_->clear();
  return Convert(Copy(range), 0);
}

Result<std::string> HostScope::Convert(const Tokens& tokens, int depth) {
  if (depth > kMostNested) return Invalid("definitions refer to each other");
  if (tokens.empty()) return Invalid("an empty expression");
  auto plain = ConvertPlain(tokens, depth);
  if (plain) {
    auto parsed = Expr::Parse(*plain);
    if (parsed) return plain;
    plain = std::unexpected(parsed.error());
  }
  // argc > 1 ? atoi(argv[1]) : 1024 — the literal is what a plain run uses.
  for (size_t i = tokens.size(); i > 1; --i) {
    if (!tokens[i - 1].Is(":")) continue;
    return ConvertPlain(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end()), depth + 1);
  }
  return plain;
}

Result<std::string> HostScope::ConvertPlain(const Tokens& tokens, int depth) {
  Pieces out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    switch (token.kind) {
      case Token::Kind::kNumber:
        out.Add(NumberText(token.text, out.real));
        break;
      case Token::Kind::kWord: {
        ATUNNER_TRY(i, Word(tokens, i, depth, out));
        break;
      }
      case Token::Kind::kSymbol: {
        const bool doubled = (token.Is("<") || token.Is(">")) && i > 0 && tokens[i - 1].Is(token.text) &&
                             tokens[i - 1].offset + 1 == token.offset;
        if (token.Is("(") && i + 2 < tokens.size()) {  // a cast?
          size_t close = i + 1;
          std::string type;
          while (close < tokens.size() && tokens[close].kind == Token::Kind::kWord)
            type += std::string(type.empty() ? "" : " ") + std::string(tokens[close++].text);
          if (close < tokens.size() && tokens[close].Is(")") && close > i + 1) {
            if (const auto alias = syntax_.aliases.find(type); alias != syntax_.aliases.end()) type = alias->second;
            if (const auto known = ParseCType(type)) {
              out.real |= IsFloat(known->dtype);
              i = close;
              break;
            }
          }
        }
        if (doubled) {
          out.text += token.text;
        } else if (token.Is("/")) {
          out.Add(std::string(1, kSlash));
        } else {
          out.Add(token.text);
        }
        break;
      }
      default:
        return Unknown(token.text);
    }
  }
  // C's `/` on integers floors (sizes are not negative). Pieces that were put in are converted already.
  std::string text;
  for (const char c : out.text) text += c != kSlash ? std::string(1, c) : out.real ? "/" : "//";
  return text;
}

/// Converts the word at `i` with what belongs to it; returns the index of the last token used.
Result<size_t> HostScope::Word(const Tokens& tokens, size_t i, int depth, Pieces& out) {
  const std::string name(tokens[i].text);
  const auto is = [&](size_t at, std::string_view text) { return at < tokens.size() && tokens[at].Is(text); };
  if (is(i + 1, "::")) return i + 1;  // std::max: the qualifier says nothing
  const auto close_of = [&](size_t open) {
    int nested = 0;
    for (size_t at = open; at < tokens.size(); ++at) {
      nested += tokens[at].Is("(") - tokens[at].Is(")");
      if (nested == 0) return at;
    }
    return tokens.size();
  };
  if (name == "sizeof" && is(i + 1, "(")) {
    const size_t close = close_of(i + 1);
    std::string type;
    for (size_t at = i + 2; at < close; ++at)
      type += std::string(type.empty() ? "" : " ") + std::string(tokens[at].text);
    if (type.starts_with("* ")) type = type.substr(2);  // sizeof(*d)
    if (const auto declared = types_.find(type); declared != types_.end()) type = declared->second;
    if (const auto alias = syntax_.aliases.find(type); alias != syntax_.aliases.end()) type = alias->second;
    if (const FileConstant* constant = syntax_.FindConstant(type)) type = constant->value;
    const auto known = ParseCType(type);
    if (!known) return Unknown("sizeof(" + type + ")");
    out.Add(std::to_string(known->bytes()));
    return close;
  }
  if (name == "static_cast" && is(i + 1, "<")) {
    size_t at = i + 1;
    std::string type;
    while (at + 1 < tokens.size() && !tokens[at].Is(">"))
      type += std::string(tokens[++at].Is(">") ? "" : tokens[at].text);
    if (const auto known = ParseCType(type)) out.real |= IsFloat(known->dtype);
    return at;
  }
  if (is(i + 1, "(")) {
    if (const auto cast = ParseCType(name)) {
      out.real |= IsFloat(cast->dtype);
      return i;
    }
    if (name == "ceil" || name == "ceilf") {
      out.real = true;
      out.Add("ceil");
      return i;
    }
    if (name == "min" || name == "max" || name == "abs") {
      out.Add(name);
      return i;
    }
    if (IsCeilDiv(name)) {
      out.Add("ceil_div");
      return i;
    }
    return Unknown(name + "(…)");
  }
  if ((is(i + 1, ".")) && i + 2 < tokens.size()) {
    const std::string_view member = tokens[i + 2].text;
    const Tokens one(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                     tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (member == "x" || member == "y" || member == "z") {
      ATUNNER_TRY(const auto extents, ExtentsOf(one, depth + 1));
      out.Add("(" + extents[member == "x" ? 0 : member == "y" ? 1 : 2] + ")");
      return i + 2;
    }
    if (member == "size" && containers_.contains(name)) {
      ATUNNER_TRY(const std::string count, Convert(Copy(containers_.find(name)->second), depth + 1));
      out.Add("(" + count + ")");
      return std::min(i + 4, tokens.size() - 1);
    }
    return Unknown(name + "." + std::string(member));
  }
  ATUNNER_TRY(const std::string value, NameValue(name, depth));
  out.Add(value);
  return i;
}

std::unexpected<Error> HostScope::UnknownVariable(const std::string& name) {
  *unknown_ = name;
  return Unknown(name);
}

Result<std::string> HostScope::NameValue(const std::string& name, int depth) {
  if (const auto stated = stated_.find(name); stated != stated_.end()) {
    leaves_->try_emplace(name, Leaf{name, stated->second, false});
    return name;
  }
  if (const auto local = definitions_.find(name); local != definitions_.end())
    return NamedTokens(name, Copy(local->second), false, depth);
  if (const auto above = InCaller(name)) {
    auto value = above->first->Convert(above->first->Copy(above->second), depth + 1);
    if (!value) return UnknownVariable(name);
    // The parameter's own name is what kernels and people know: keep it for a literal.
    const auto parsed = Expr::Parse(*value);
    if (!parsed || !parsed->Names().empty()) return "(" + *value + ")";
    const auto number = parsed->EvaluateInt({});
    if (!number) return *value;
    leaves_->try_emplace(name, Leaf{name, *number, false});
    return name;
  }
  if (const FileConstant* constant = syntax_.FindConstant(name)) {
    texts_->push_back(constant->value);
    return NamedTokens(name, Lex(texts_->back()).tokens, true, depth);
  }
  return UnknownVariable(name);
}

/// A literal keeps its name; anything else is put in its place.
Result<std::string> HostScope::NamedTokens(const std::string& name, const Tokens& tokens, bool of_file, int depth) {
  if (tokens.size() == 1 && tokens[0].Is(name)) return UnknownVariable(name);
  auto value = Convert(tokens, depth + 1);
  if (!value) return UnknownVariable(name);
  ATUNNER_TRY(const Expr parsed, Expr::Parse(*value));
  if (!parsed.Names().empty()) return "(" + *value + ")";
  const auto number = parsed.EvaluateInt({});
  if (!number) return "(" + *value + ")";  // a fraction
  leaves_->try_emplace(name, Leaf{name, *number, of_file});
  return name;
}

Result<std::array<std::string, 3>> HostScope::Extents(TokenRange range) {
  unknown_->clear();
  return ExtentsOf(Copy(range), 0);
}

Result<std::array<std::string, 3>> HostScope::ExtentsOf(const Tokens& tokens, int depth) {
  if (depth > kMostNested) return Invalid("definitions refer to each other");
  std::array<std::string, 3> extents = {"1", "1", "1"};
  const auto fill = [&](const Tokens& list) -> Status {
    size_t axis = 0;
    Tokens piece;
    int nested = 0;
    for (size_t i = 0; i <= list.size(); ++i) {
      const bool comma = i < list.size() && list[i].Is(",") && nested == 0;
      if (i < list.size() && !comma) {
        nested += (list[i].Is("(") || list[i].Is("{")) - (list[i].Is(")") || list[i].Is("}"));
        piece.push_back(list[i]);
        continue;
      }
      if (axis > 2) return Invalid("more than three extents");
      if (!piece.empty()) {
        ATUNNER_TRY(extents[axis], Convert(piece, depth + 1));
      }
      ++axis;
      piece.clear();
    }
    return {};
  };
  Tokens inner = tokens;
  if (inner.size() >= 2 && inner[0].Is("dim3") && (inner[1].Is("(") || inner[1].Is("{"))) inner.erase(inner.begin());
  const bool wrapped = inner.size() >= 2 && ((inner.front().Is("{") && inner.back().Is("}")) ||
                                             (inner.size() < tokens.size() && inner.front().Is("(")));
  if (wrapped) inner = Tokens(inner.begin() + 1, inner.end() - 1);
  if (!wrapped && inner.size() == 1 && inner[0].kind == Token::Kind::kWord) {
    const std::string name(inner[0].text);
    if (const auto local = definitions_.find(name); local != definitions_.end()) {
      const Tokens definition = Copy(local->second);
      const bool plain =
          definition.size() == 1 || (definition.size() > 0 && !definition[0].Is("dim3") && !definition[0].Is("{") &&
                                     std::ranges::none_of(definition, [](const Token& t) { return t.Is(","); }));
      if (!plain || (definition.size() == 1 && definition[0].kind == Token::Kind::kWord &&
                     !syntax_.FindConstant(definition[0].text))) {
        ATUNNER_TRY(extents, ExtentsOf(definition, depth + 1));
      } else {
        ATUNNER_TRY(extents[0], NameValue(name, depth + 1));
      }
    } else if (const auto above = InCaller(name)) {
      ATUNNER_TRY(extents, above->first->ExtentsOf(above->first->Copy(above->second), depth + 1));
    } else {
      ATUNNER_TRY(extents[0], NameValue(name, depth + 1));
    }
    if (const auto members = members_.find(name); members != members_.end()) {
      for (size_t axis = 0; axis < 3; ++axis) {
        if (members->second[axis].empty()) continue;
        ATUNNER_TRY(extents[axis], Convert(Copy(members->second[axis]), depth + 1));
      }
    }
    return extents;
  }
  ATUNNER_RETURN_IF_ERROR(fill(inner));
  return extents;
}

Result<HostScope::Buffer> HostScope::BufferOf(TokenRange range) {
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax_.token(i);
    if (token.Is("+") || token.Is("-")) break;  // a pointer into a buffer: how much is left of it is not known
    if (token.kind != Token::Kind::kWord) continue;
    const std::string name(token.text);
    Buffer buffer{name, "", "", zeroed_.contains(name)};
    if (const auto type = types_.find(name); type != types_.end()) buffer.type = type->second;
    const bool offset = i + 1 < range.end && (syntax_.token(i + 1).Is("+") || syntax_.token(i + 1).Is("-"));
    if (offset) break;
    if (const auto bytes = allocations_.find(name); bytes != allocations_.end()) {
      ATUNNER_TRY(buffer.bytes, Convert(Copy(bytes->second), 0));
      return buffer;
    }
    if (const auto count = containers_.find(name); count != containers_.end()) {
      const auto type = ParseCType(buffer.type);
      if (!type) return Unknown("the element type of " + name);
      ATUNNER_TRY(const std::string elements, Convert(Copy(count->second), 0));
      buffer.bytes = "(" + elements + ") * " + std::to_string(type->bytes());
      return buffer;
    }
    if (const auto above = InCaller(name)) {
      ATUNNER_TRY(Buffer found, above->first->BufferOf(above->second));
      found.zeroed |= buffer.zeroed;
      return found;
    }
  }
  return Unknown(syntax_.Text(range));
}

}  // namespace atunner
