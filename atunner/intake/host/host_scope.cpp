#include "atunner/intake/host/host_scope.h"

#include <algorithm>
#include <set>

#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/structure_layout.h"
#include "atunner/intake/host/host_objects.h"
#include "atunner/intake/host/record_buffers.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

constexpr int kMostNested = 24;
constexpr int kMostScopes = 5000;
// Stands for a division until the whole expression shows whether it is one of integers.
constexpr char kSlash = '\x01';

std::unexpected<Error> Unknown(std::string_view what) {
  return Invalid("the value of '" + std::string(what) + "' is not known");
}

/// A C++ number in Python's notation; sets `real` for floating point.
std::string NumberText(std::string_view token, bool& real) {
  std::string text;
  for (const char c : token) {
    if (c != '\'') text += c;
  }
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (!hex && text.find_first_of(".eE") != std::string::npos) real = true;
  const char* suffixes = hex ? "uUlL" : "uUlLfF";
  if (!hex && (text.back() == 'f' || text.back() == 'F')) real = true;
  while (text.size() > 1 && std::string_view(suffixes).find(text.back()) != std::string_view::npos)
    text.pop_back();
  if (text.back() == '.') text += '0';
  return text;
}

bool IsCeilDiv(std::string name) {
  std::erase(name, '_');
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::set<std::string_view> kNames = {"ceildiv", "cdiv",       "divup",      "idivup",
                                                    "divceil", "divroundup", "ceildivide", "updiv"};
  return kNames.contains(name);
}

/// The token that closes the bracket at `open`, or the number of tokens.
size_t CloseOf(const std::vector<Token>& tokens, size_t open) {
  int nested = 0;
  for (size_t at = open; at < tokens.size(); ++at) {
    nested += (tokens[at].Is("(") || tokens[at].Is("[")) -
              (tokens[at].Is(")") || tokens[at].Is("]"));
    if (nested == 0) return at;
  }
  return tokens.size();
}

/// The first `symbol` outside of brackets; a `:` must belong to the `?` before it.
size_t FindOutside(const std::vector<Token>& tokens, std::string_view symbol, size_t from) {
  int questions = 0;
  for (size_t at = from; at < tokens.size(); ++at) {
    if (tokens[at].Is("(") || tokens[at].Is("[")) {
      at = CloseOf(tokens, at);
    } else if (tokens[at].Is(symbol) && questions == 0) {
      return at;
    } else {
      questions += tokens[at].Is("?") - tokens[at].Is(":");
    }
  }
  return tokens.size();
}

/// Splits at commas outside of brackets.
std::vector<std::vector<Token>> SplitTokens(const std::vector<Token>& tokens) {
  std::vector<std::vector<Token>> pieces;
  int nested = 0;
  for (const Token& token : tokens) {
    nested += token.Is("(") - token.Is(")");
    if (pieces.empty() || (token.Is(",") && nested == 0)) pieces.emplace_back();
    if (!token.Is(",") || nested != 0) pieces.back().push_back(token);
  }
  return pieces;
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
      texts_(std::make_shared<std::deque<std::string>>()),
      scopes_left_(std::make_shared<int>(kMostScopes)) {
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
      texts_(parent.texts_),
      scopes_left_(parent.scopes_left_) {
  --*scopes_left_;
  Collect();
}

// --- expressions ---

HostScope::Tokens HostScope::Copy(TokenRange range) const {
  Tokens tokens;
  for (size_t i = range.begin; i < std::min(range.end, syntax_.lexed.tokens.size()); ++i)
    tokens.push_back(syntax_.token(i));
  return tokens;
}

/// Called at the start of every public query: forgets the last unknown variable and resets the
/// limit of nested scopes.
void HostScope::Begin() {
  unknown_->clear();
  *scopes_left_ = kMostScopes;
}

Result<std::string> HostScope::Expression(TokenRange range) {
  Begin();
  return Convert(Copy(range), 0);
}

Result<std::string> HostScope::Convert(const Tokens& tokens, int depth) {
  if (depth > kMostNested) return Invalid("definitions refer to each other");
  if (tokens.empty()) return Invalid("an empty expression");
  if (const size_t question = FindOutside(tokens, "?", 0); question < tokens.size()) {
    if (auto choice = Choice(tokens, question, depth)) return choice;
  }
  auto plain = ConvertPlain(tokens, depth);
  if (plain) {
    auto parsed = Expr::Parse(*plain);
    if (parsed) return plain;
    plain = std::unexpected(parsed.error());
  }
  // argc > 1 ? atoi(argv[1]) : 1024: takes the value of a run without arguments.
  for (size_t i = tokens.size(); i > 1; --i) {
    if (!tokens[i - 1].Is(":")) continue;
    return ConvertPlain(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end()),
                        depth + 1);
  }
  return plain;
}

/// Converts `condition ? one : other`.
Result<std::string> HostScope::Choice(const Tokens& tokens, size_t question, int depth) {
  const auto begin = tokens.begin();
  const auto at = [&](size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
  const size_t colon = FindOutside(tokens, ":", question + 1);
  if (colon >= tokens.size()) return Unknown("?");
  ATUNNER_TRY(const std::string condition, Convert(Tokens(begin, at(question)), depth + 1));
  ATUNNER_TRY(const std::string one, Convert(Tokens(at(question + 1), at(colon)), depth + 1));
  ATUNNER_TRY(const std::string other, Convert(Tokens(at(colon + 1), tokens.end()), depth + 1));
  return "((" + one + ") if (" + condition + ") else (" + other + "))";
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
        const bool doubled = (token.Is("<") || token.Is(">")) && i > 0 &&
                             tokens[i - 1].Is(token.text) &&
                             tokens[i - 1].offset + 1 == token.offset;
        if (token.Is("(") && i + 2 < tokens.size()) {  // a cast?
          size_t close = i + 1;
          std::string type;
          while (close < tokens.size() && tokens[close].kind == Token::Kind::kWord)
            type += std::string(type.empty() ? "" : " ") + std::string(tokens[close++].text);
          if (close < tokens.size() && tokens[close].Is(")") && close > i + 1) {
            if (const auto alias = syntax_.aliases.find(type); alias != syntax_.aliases.end())
              type = alias->second;
            if (const auto known = ParseCType(type)) {
              out.real |= IsFloat(known->dtype);
              i = close;
              break;
            }
          }
        }
        if (token.Is("(")) {
          const size_t close = CloseOf(tokens, i);
          const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1;
          const Tokens inside(begin,
                              tokens.begin() + static_cast<std::ptrdiff_t>(std::max(close, i + 1)));
          if (close < tokens.size() && FindOutside(inside, "?", 0) < inside.size()) {
            ATUNNER_TRY(const std::string value, Convert(inside, depth + 1));
            out.Add("(" + value + ")");
            i = close;
            break;
          }
        }
        if (doubled) {
          out.text += token.text;
        } else if (token.Is("&&") || token.Is("||") || token.Is("!")) {
          out.Add(token.Is("&&") ? "and" : token.Is("||") ? "or" : "not");
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
  // C's `/` on integers rounds down, since sizes are not negative. Substituted parts are already
  // converted.
  std::string text;
  for (const char c : out.text) text += c != kSlash ? std::string(1, c) : out.real ? "/" : "//";
  return text;
}

/// True for a floating-point constant of the file, e.g. `#define EPS 1.0f`.
bool HostScope::IsRealConstant(const std::string& name) const {
  const FileConstant* constant = definitions_.contains(name) ? nullptr : syntax_.FindConstant(name);
  bool real = false;
  if (constant == nullptr) return false;
  for (const Token& token : Lex(constant->value).tokens) {
    if (token.kind == Token::Kind::kNumber) NumberText(token.text, real);
  }
  return real;
}

/// Converts the name or call at token `i`; returns the index of its last token.
Result<size_t> HostScope::Word(const Tokens& tokens, size_t i, int depth, Pieces& out) {
  const std::string name(tokens[i].text);
  const auto is = [&](size_t at, std::string_view text) {
    return at < tokens.size() && tokens[at].Is(text);
  };
  if (is(i + 1, "::")) {
    const auto value = i + 2 < tokens.size()
                           ? StaticMember(TypeNamed(name), tokens[i + 2].text, depth)
                           : std::nullopt;
    if (value) out.Add("(" + *value + ")");
    if (value && is(i + 3, "(") && is(i + 4, ")")) return i + 4;
    return value ? i + 2 : i + 1;  // std::max: the qualifier is skipped
  }
  if (name == "true" || name == "false") {
    out.Add(name == "true" ? "1" : "0");
    return i;
  }
  if (name == "sizeof" && i + 1 < tokens.size()) {
    const bool brackets = is(i + 1, "(");  // or sizeof *d
    const size_t close = brackets ? CloseOf(tokens, i + 1) : i + 1 + is(i + 1, "*");
    std::string type;
    for (size_t at = brackets ? i + 2 : i + 1; at < std::min(close + !brackets, tokens.size());
         ++at)
      type += std::string(type.empty() ? "" : " ") + std::string(tokens[at].text);
    if (type.starts_with("* ")) type = type.substr(2);                // sizeof(*d)
    if (type.ends_with("]")) type = type.substr(0, type.find(" ["));  // sizeof(d[0])
    if (const auto declared = types_.find(type); declared != types_.end()) type = declared->second;
    type = TypeNamed(type);
    const auto record = RecordOf(syntax_, type);
    if (const auto alias = syntax_.aliases.find(type); alias != syntax_.aliases.end())
      type = alias->second;
    if (const FileConstant* constant = syntax_.FindConstant(type)) type = constant->value;
    auto known = ParseCType(type);
    if (!known) known = FloatsOf(syntax_, type);
    if (!known && !record) return Unknown("sizeof(" + type + ")");
    out.Add(std::to_string(known ? known->bytes() : record->bytes));
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
  if ((name == "min" || name == "max") && is(i + 1, "<")) {  // std::min<int>(…)
    size_t close = i + 1;
    while (close < tokens.size() && !tokens[close].Is(">")) ++close;
    out.Add(name);
    return close;
  }
  if (is(i + 1, "[") && lists_.contains(name)) {
    const size_t close = CloseOf(tokens, i + 1);
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    if (close >= tokens.size()) return Unknown(name);
    ATUNNER_TRY(
        const std::string value,
        Element(name, Tokens(begin + 2, begin + static_cast<std::ptrdiff_t>(close - i)), depth));
    out.Add("(" + value + ")");
    return close;
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
    const size_t close = CloseOf(tokens, i + 1);
    if (close >= tokens.size()) return Unknown(name + "(…)");
    if (is(close + 1, ".") || is(close + 1, "->")) return MemberWord(tokens, i, depth, out);
    const Tokens inside(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 2,
                        tokens.begin() + static_cast<std::ptrdiff_t>(close));
    auto value = Called(name, SplitTokens(inside), depth, out.real);
    if (!value) value = MemberValue(tokens, i, close + 1, depth);
    if (!value) return std::unexpected(value.error());
    out.real |= IsReal("", *value);
    out.Add("(" + *value + ")");
    return close;
  }
  if (is(i + 1, ".") || is(i + 1, "->")) return MemberWord(tokens, i, depth, out);
  ATUNNER_TRY(const std::string value, NameValue(name, depth));
  out.real |= IsReal(name, value) || IsRealConstant(name);
  out.Add(value);
  return i;
}

/// Converts `object.member` or `object.function(…)` at token `i`; returns the index of its last
/// token.
Result<size_t> HostScope::MemberWord(const Tokens& tokens, size_t i, int depth, Pieces& out) {
  const auto is = [&](size_t at, std::string_view text) {
    return at < tokens.size() && tokens[at].Is(text);
  };
  const std::string name(tokens[i].text);
  size_t last = is(i + 1, "(") ? std::min(CloseOf(tokens, i + 1), tokens.size() - 1) : i;
  while (last + 2 < tokens.size() && (is(last + 1, ".") || is(last + 1, "->"))) {
    last += 2;
    if (is(last + 1, "(")) last = std::min(CloseOf(tokens, last + 1), tokens.size() - 1);
  }
  if (last == i) return Unknown(name);
  if (is(i + 2, "size") && containers_.contains(name)) {
    ATUNNER_TRY(const std::string count, Convert(Copy(containers_.find(name)->second), depth + 1));
    out.Add("(" + count + ")");
    return last;
  }
  const auto value = MemberValue(tokens, i, last + 1, depth);
  if (value) {
    out.real |= IsReal("", *value);
    out.Add(*value);
    return last;
  }
  const std::string_view member = tokens[last].text;
  if (member != "x" && member != "y" && member != "z") return std::unexpected(value.error());
  const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
  const Tokens extents_of(begin, tokens.begin() + static_cast<std::ptrdiff_t>(last) - 1);
  ATUNNER_TRY(const auto extents, ExtentsOf(extents_of, depth + 1));
  unknown_->clear();
  out.Add("(" + extents[member == "x" ? 0 : member == "y" ? 1 : 2] + ")");
  return last;
}

/// Converts a call of a <cmath> function, of a function of the file that only returns an
/// expression, or of a macro.
Result<std::string> HostScope::Called(const std::string& name, const std::vector<Tokens>& arguments,
                                      int depth, bool& real) {
  const std::string plain = name.ends_with("f") ? name.substr(0, name.size() - 1) : name;
  const bool root = plain == "sqrt" || plain == "rsqrt";
  if ((root || plain == "exp" || plain == "pow") && arguments.size() == (plain == "pow" ? 2 : 1)) {
    real = true;
    ATUNNER_TRY(const std::string first, Convert(arguments[0], depth + 1));
    if (root) return "(" + first + ") ** " + (plain == "sqrt" ? "0.5" : "-0.5");
    if (plain == "exp") return "2.718281828459045 ** (" + first + ")";
    ATUNNER_TRY(const std::string second, Convert(arguments[1], depth + 1));
    return "(" + first + ") ** (" + second + ")";
  }
  const auto [parameters, body] = DefinitionOf(name);
  if (body.empty() || parameters.size() != arguments.size()) return Unknown(name + "(…)");
  Tokens expression;
  const auto bracket = [](std::string_view text) {
    return Token{Token::Kind::kSymbol, text, 0, 0};
  };
  for (const Token& token : body) {
    const auto parameter = std::ranges::find(parameters, token.text);
    if (token.kind != Token::Kind::kWord || parameter == parameters.end()) {
      expression.push_back(token);
      continue;
    }
    const Tokens& argument = arguments[static_cast<size_t>(parameter - parameters.begin())];
    expression.push_back(bracket("("));
    expression.insert(expression.end(), argument.begin(), argument.end());
    expression.push_back(bracket(")"));
  }
  return Convert(expression, depth + 1);
}

/// Parameter names and result expression of a function, lambda or macro; empty if it is more than
/// an expression.
std::pair<std::vector<std::string_view>, HostScope::Tokens> HostScope::DefinitionOf(
    const std::string& name) {
  std::vector<std::string_view> parameters;
  const auto take = [&](TokenRange declared, TokenRange body) -> Tokens {
    if (body.empty() || !syntax_.token(body.begin).Is("return")) return {};
    size_t end = body.begin;
    while (end < body.end && !syntax_.token(end).Is(";")) ++end;
    if (end + 1 != body.end) return {};
    for (const TokenRange& parameter : SplitArguments(syntax_, declared, true))
      parameters.push_back(syntax_.token(parameter.end - 1).text);
    return Copy({body.begin + 1, end});
  };
  const std::string own = function_ < syntax_.functions.size()
                              ? syntax_.functions[function_].of_class
                              : "";
  for (const HostFunction& function : syntax_.functions) {
    if (function.name != name || (!function.of_class.empty() && function.of_class != own)) continue;
    if (Tokens body = take(function.parameters, function.body); !body.empty())
      return {parameters, body};
  }
  // auto tiles = [](int n, int t) { return (n + t - 1) / t; };
  const auto lambda = definitions_.find(name);
  if (lambda != definitions_.end() && syntax_.token(lambda->second.begin).Is("[")) {
    const size_t open = MatchingClose(syntax_, lambda->second.begin) + 1;
    const size_t close = MatchingClose(syntax_, open);
    size_t brace = close + 1;
    while (brace < lambda->second.end && !syntax_.token(brace).Is("{")) ++brace;
    if (Tokens body = take({open + 1, close}, {brace + 1, MatchingClose(syntax_, brace)});
        !body.empty())
      return {parameters, body};
  }
  for (const Token& directive : syntax_.lexed.tokens) {  // #define BLOCKS(n) (((n) + 255) / 256)
    const size_t at = directive.kind == Token::Kind::kDirective ? directive.text.find(name + "(")
                                                                : std::string::npos;
    if (at == std::string::npos) continue;
    const std::string_view before = directive.text.substr(0, at);
    const size_t close = directive.text.find(')', at);
    if (before.find("define") == std::string_view::npos || !before.ends_with(' ') ||
        close == std::string::npos)
      continue;
    if (before.find_first_not_of(" \t", before.find("define") + 6) != std::string_view::npos)
      continue;
    texts_->emplace_back(directive.text.substr(close + 1));
    std::erase(texts_->back(), '\\');
    for (const Token& token :
         Lex(directive.text.substr(at + name.size() + 1, close - at - name.size() - 1)).tokens)
      if (token.kind == Token::Kind::kWord) parameters.push_back(token.text);
    return {parameters, Lex(texts_->back()).tokens};
  }
  return {};
}

std::unexpected<Error> HostScope::UnknownVariable(const std::string& name) {
  *unknown_ = name;
  return Unknown(name);
}

/// The error for a variable whose value depends on an unknown one. The variable itself is asked
/// for, unless the unknown one is a parameter of its function, or it is a local variable of a
/// called function, which the user does not know.
std::unexpected<Error> HostScope::UnknownBehind(const std::string& name) {
  return !unknown_->empty() && (pin_ || IsParameter(*unknown_)) ? Unknown(*unknown_)
                                                                : UnknownVariable(name);
}

Result<std::string> HostScope::NameValue(const std::string& name, int depth) {
  if (const auto stated = stated_.find(name); stated != stated_.end()) {
    leaves_->try_emplace(name, Leaf{name, stated->second, false});
    return name;
  }
  if (const auto local = Definition(name)) return NamedTokens(name, Copy(*local), false, depth);
  if (const auto pitch = pitches_.find(name); pitch != pitches_.end())
    return PitchOf(pitch->second, depth);
  if (const auto above = InCaller(name)) {
    auto value = above->first->Convert(above->first->Copy(above->second), depth + 1);
    if (!value) return UnknownBehind(name);
    // A literal argument gets the parameter's name, which kernel and user know.
    const auto parsed = Expr::Parse(*value);
    if (!parsed || !parsed->Names().empty()) return "(" + *value + ")";
    const auto number = parsed->EvaluateInt({});
    // no size
    if (!number || *number < 1 || (pin_ && IsRealParameter(name))) return "(" + *value + ")";
    return KeptAsLeaf(name, *number, false);
  }
  if (const FileConstant* constant = syntax_.FindConstant(name)) {
    texts_->push_back(constant->value);
    return NamedTokens(name, Lex(texts_->back()).tokens, true, depth);
  }
  const bool elsewhere = FieldOfThis(name) != nullptr || bound_.contains(name) ||
                         syntax_.FindVariable(name) != nullptr;
  if (!elsewhere) return UnknownVariable(name);
  const auto found = Named({name}, depth);
  if (!found || !found->allocation.empty()) return UnknownVariable(name);
  auto value = IsConstantOfThis(name)
                   ? found->scope->Convert(found->scope->Copy(found->range), depth + 1)
                   : ValueFound(*found, name, depth);
  if (!value) return UnknownBehind(name);
  return IsConstantOfThis(name) ? "(" + *value + ")" : *value;
}

/// The value of a name: a literal becomes a leaf of that name, anything else is substituted.
Result<std::string> HostScope::NamedTokens(const std::string& name, const Tokens& tokens,
                                           bool of_file, int depth) {
  if (tokens.size() == 1 && tokens[0].Is(name)) return UnknownVariable(name);
  auto value = Convert(tokens, depth + 1);
  if (!value) return UnknownBehind(name);
  ATUNNER_TRY(const Expr parsed, Expr::Parse(*value));
  if (!parsed.Names().empty()) return "(" + *value + ")";
  const auto number = parsed.EvaluateInt({});
  if (!number || (*number < 1 && !of_file)) return "(" + *value + ")";  // a fraction, or no size
  return KeptAsLeaf(name, *number, of_file);
}

Result<std::array<std::string, 3>> HostScope::Extents(TokenRange range) {
  Begin();
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
  if (inner.size() >= 2 && inner[0].Is("dim3") && (inner[1].Is("(") || inner[1].Is("{")))
    inner.erase(inner.begin());
  const bool wrapped = inner.size() >= 2 &&
                       ((inner.front().Is("{") && inner.back().Is("}")) ||
                        (inner.size() < tokens.size() && inner.front().Is("(")));
  if (wrapped) inner = Tokens(inner.begin() + 1, inner.end() - 1);
  if (!wrapped && inner.size() == 1 && inner[0].kind == Token::Kind::kWord)
    return ExtentsNamed(std::string(inner[0].text), depth);
  const bool member = inner.size() > 2 &&
                      (inner[inner.size() - 2].Is(".") || inner[inner.size() - 2].Is("->"));
  if (member) {
    if (auto found = ExtentsFound(tokens, depth)) return *found;
  }
  const Status filled = fill(inner);
  if (!filled) {
    if (auto found = ExtentsFound(tokens, depth)) return *found;
    return std::unexpected(filled.error());
  }
  return extents;
}

/// The extents of a dim3 that is a member or that a function returns.
std::optional<std::array<std::string, 3>> HostScope::ExtentsFound(const Tokens& tokens, int depth) {
  const auto range = RangeOf(tokens, 0, tokens.size());
  const auto found = range ? MemberOf(*range, {}, depth) : std::nullopt;
  if (!found || !found->allocation.empty()) return std::nullopt;
  auto extents = found->scope->ExtentsOf(found->scope->Copy(found->range), depth + 1);
  if (!extents) return std::nullopt;
  unknown_->clear();
  return *std::move(extents);
}

Result<std::array<std::string, 3>> HostScope::ExtentsNamed(const std::string& name, int depth) {
  std::array<std::string, 3> extents = {"1", "1", "1"};
  const auto member = [&](size_t axis) { return definitions_.find(name + "." + "xyz"[axis]); };
  const bool by_member = member(0) != definitions_.end() || member(1) != definitions_.end();
  if (const auto local = Definition(name)) {
    const Tokens definition = Copy(*local);
    const bool plain = definition.size() == 1 ||
                       (definition.size() > 0 && !definition[0].Is("dim3") &&
                        !definition[0].Is("{") &&
                        std::ranges::none_of(definition, [](const Token& t) { return t.Is(","); }));
    if (!plain || (definition.size() == 1 && definition[0].kind == Token::Kind::kWord &&
                   !syntax_.FindConstant(definition[0].text))) {
      ATUNNER_TRY(extents, ExtentsOf(definition, depth + 1));
    } else if (auto value = NameValue(name, depth + 1)) {
      extents[0] = *std::move(value);
    } else {  // dim3 grid = GridOf(n);
      const std::string unknown = *unknown_;
      auto found = ExtentsOf(definition, depth + 1);
      if (!found) *unknown_ = unknown;
      if (!found) return std::unexpected(value.error());
      extents = *std::move(found);
    }
  } else if (const auto above = InCaller(name)) {
    ATUNNER_TRY(extents, above->first->ExtentsOf(above->first->Copy(above->second), depth + 1));
  } else if (FieldOfThis(name) != nullptr || bound_.contains(name) ||
             syntax_.FindVariable(name) != nullptr) {
    const auto found = Named({name}, depth + 1);
    if (!found || !found->allocation.empty()) return UnknownVariable(name);
    ATUNNER_TRY(extents, found->scope->ExtentsOf(found->scope->Copy(found->range), depth + 1));
  } else if (!by_member) {  // else: dim3 block; block.x = 128;
    ATUNNER_TRY(extents[0], NameValue(name, depth + 1));
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    if (member(axis) == definitions_.end()) continue;
    ATUNNER_TRY(extents[axis], Convert(Copy(member(axis)->second), depth + 1));
  }
  return extents;
}

}  // namespace atunner
