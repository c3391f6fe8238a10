#include "atunner/intake/host/host_state.h"

#include <algorithm>

#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/structures.h"
#include "atunner/intake/host/host_expression.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

constexpr int kMostAliases = 8;       // aliases of aliases
constexpr size_t kLongestText = 400;  // of an expression, before only its value is kept
constexpr std::string_view kMarks[] = {"const",    "volatile",  "struct",
                                       "typename", "constexpr", "static"};

/// "grid.x" and "d[2]" as a name that an annotation can state: "grid_x", "d_2".
std::string NameOfPath(std::string_view path) {
  std::string name;
  for (const char c : path) {
    if (c == ']') continue;
    name += c == '.' || c == '[' ? '_' : c;
  }
  return name;
}

/// True if model/expr takes the text as one name.
bool IsExpressionName(const std::string& text) {
  const auto expr = Expr::Parse(text);
  return expr && expr->Names().size() == 1 && expr->Names()[0] == text;
}

bool HasNames(const std::string& text) {
  const auto expr = Expr::Parse(text);
  return expr && !expr->Names().empty();
}

HostValue OfConstant(HostState& state, const FileConstant& constant) {
  if (const auto known = state.constants.find(constant.name); known != state.constants.end())
    return known->second;
  // A constant that refers to itself is unknown.
  state.constants[constant.name] = HostValue::Unknown(constant.name);
  state.texts.push_back(constant.value);
  HostFrame none;
  HostValue value = Evaluate(state, none, Lex(state.texts.back()).tokens);
  if (value.Is(HostValue::Kind::kNumber) && !value.real && !HasNames(value.text)) {
    const auto now = NumberNow(value, state.leaves);
    if (now && std::holds_alternative<int64_t>(*now) && IsExpressionName(constant.name))
      value = HostValue::Number(
          NameLeaf(state, constant.name, std::get<int64_t>(*now), /*of_file=*/true));
  } else if (value.Is(HostValue::Kind::kUnknown)) {
    value = HostValue::Unknown(constant.name);
  }
  return state.constants[constant.name] = value;
}

/// A variable of the file, with its initialiser.
HostCell OfFile(HostState& state, const FileVariable& declared) {
  const auto variable = std::make_shared<HostVariable>();
  state.variables[declared.name] = variable;
  variable->name = declared.name;
  variable->type = state.syntax.Text(declared.type);
  if (const size_t star = variable->type.find('*'); star != std::string::npos) {
    variable->type.resize(star);
    variable->pointer = true;
  }
  variable->type = ResolvedType(state, {}, variable->type);
  variable->value = HostValue::Unknown(variable->pointer ? "" : declared.name);
  HostFrame none;
  if (!declared.value.empty())
    Store(state, *variable, Evaluate(state, none, CopyTokens(state.syntax, declared.value)),
          /*named=*/true);
  return variable;
}

HostCell FindFileVariable(HostState& state, std::string_view name) {
  if (const auto known = state.variables.find(name); known != state.variables.end())
    return known->second;
  const FileVariable* declared = state.syntax.FindVariable(name);
  return declared == nullptr ? nullptr : OfFile(state, *declared);
}

HostValue Substituted(HostValue value) {
  if (!value.Is(HostValue::Kind::kNumber) || value.plain) return value;
  value.text = "(" + value.text + ")";
  value.plain = true;
  return value;
}

}  // namespace

Tokens CopyTokens(const CudaSyntax& syntax, TokenRange range) {
  Tokens tokens;
  for (size_t i = range.begin; i < std::min(range.end, syntax.lexed.tokens.size()); ++i) {
    if (syntax.token(i).kind != Token::Kind::kDirective) tokens.push_back(syntax.token(i));
  }
  return tokens;
}

std::string NameLeaf(HostState& state, const std::string& name, int64_t value, bool of_file) {
  for (int variant = 1;; ++variant) {
    const std::string unique = variant == 1 ? name : name + "__" + std::to_string(variant);
    const auto [leaf, fresh] = state.leaves.try_emplace(unique, Leaf{name, value, of_file});
    if (fresh || leaf->second.value == value) return unique;
  }
}

HostCell FindCell(HostState& state, const HostFrame& frame, std::string_view path) {
  if (const auto local = frame.variables.find(path); local != frame.variables.end())
    return local->second;
  return FindFileVariable(state, path);
}

HostCell CellAt(HostState& state, HostFrame& frame, const std::string& path) {
  if (HostCell known = FindCell(state, frame, path)) return known;
  auto& variables = frame.variables.contains(path.substr(0, path.find_first_of(".[")))
                        ? frame.variables
                        : state.variables;
  const auto variable = std::make_shared<HostVariable>();
  variable->name = NameOfPath(path);
  variable->value = HostValue::Unknown(variable->name);
  if (const size_t bracket = path.find('['); bracket != std::string::npos) {
    if (const HostCell base = FindCell(state, frame, path.substr(0, bracket)))
      variable->type = base->type;
  }
  return variables[path] = variable;
}

HostValue ReadName(HostState& state, HostFrame& frame, const std::string& path) {
  const HostCell cell = FindCell(state, frame, path);
  const HostValue* value = cell ? &cell->value : nullptr;
  const bool other = value != nullptr && !value->Is(HostValue::Kind::kNumber) &&
                     !value->Is(HostValue::Kind::kUnknown);
  const std::string name = NameOfPath(path);
  if (const auto stated = state.stated.find(name); stated != state.stated.end() && !other)
    return HostValue::Number(NameLeaf(state, name, stated->second, /*of_file=*/false));
  if (value != nullptr) return Substituted(*value);
  if (const FileConstant* constant = state.syntax.FindConstant(path))
    return Substituted(OfConstant(state, *constant));
  return HostValue::Unknown(name);
}

void Store(HostState& state, HostVariable& variable, HostValue value, bool named) {
  if (variable.type == "auto" && !value.type.empty()) variable.type = value.type;
  if (value.Is(HostValue::Kind::kUnknown)) {
    const bool pointer = variable.pointer;
    if (value.missing.nameless || value.missing.names.empty())
      value = HostValue::Unknown(pointer ? "" : variable.name);
  }
  if (value.Is(HostValue::Kind::kNumber)) {
    if (!variable.pointer) value = Converted(state, {}, std::move(value), variable.type);
    const bool literal = !HasNames(value.text);
    const auto now = NumberNow(value, state.leaves);
    const int64_t* whole = now ? std::get_if<int64_t>(&*now) : nullptr;
    if (named && !value.real && literal && whole != nullptr && *whole >= 1 &&
        IsExpressionName(variable.name)) {
      value.text = NameLeaf(state, variable.name, *whole, /*of_file=*/false);
      value.plain = true;
    } else if (value.text.size() > kLongestText && now) {
      value.text = ToString(*now);
    }
    value.type = variable.type;
  }
  variable.value = std::move(value);
}

HostValue Converted(HostState& state, const HostFrame& frame, HostValue value,
                    const std::string& type) {
  if (!value.Is(HostValue::Kind::kNumber)) return value;
  const auto known = ParseCType(ResolvedType(state, frame, type));
  if (!known) return value;
  value.type = type;
  if (IsFloat(known->dtype)) {
    value.real = true;
  } else if (value.real) {
    if (!value.text.starts_with("ceil(") || value.text.find(')') + 1 != value.text.size())
      value.text = "int(" + value.text + ")";
    value.real = false;
    value.plain = true;
  }
  return value;
}

std::string ResolvedType(const HostState& state, const HostFrame& frame, std::string_view type) {
  std::string text;
  for (const Token& token : Lex(type).tokens) {
    if (std::ranges::find(kMarks, token.text) != std::end(kMarks)) continue;
    const bool words = !text.empty() && token.kind == Token::Kind::kWord && text.back() != ':' &&
                       text.back() != '<';
    text += std::string(words ? " " : "") + std::string(token.text);
    if (token.Is(",")) text += ' ';
  }
  for (int i = 0; i < kMostAliases && !ParseCType(text); ++i) {
    if (const auto bound = frame.types.find(text); bound != frame.types.end()) {
      if (bound->second == text) break;
      text = bound->second;
    } else if (const auto alias = state.syntax.FindAlias(text);
               alias != state.syntax.aliases.end()) {
      text = alias->second;
    } else if (const FileConstant* constant = state.syntax.FindConstant(text);
               constant != nullptr && constant->kind == FileConstant::Kind::kMacro) {
      text = constant->value;  // #define REAL float
    } else {
      break;
    }
  }
  return text;
}

std::optional<int64_t> BytesOfType(const HostState& state, const HostFrame& frame,
                                   std::string_view type) {
  constexpr int64_t kPointer = 8;
  const std::string resolved = ResolvedType(state, frame, type);
  if (resolved.ends_with('*')) return kPointer;
  if (const auto known = ParseCType(resolved)) return known->bytes();
  if (const auto structure = StructureOf(state.syntax, resolved)) return structure->bytes;
  return std::nullopt;
}

}  // namespace atunner
