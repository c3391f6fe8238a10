// Declared types of host variables, parameters and members.
#include <algorithm>

#include "atunner/intake/c_type.h"
#include "atunner/intake/host/host_objects.h"
#include "atunner/model/expr/expr.h"

namespace atunner {

/// The first class of the source that the tokens name.
const ClassDefinition* HostScope::ClassIn(TokenRange range) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (syntax_.token(i).kind != Token::Kind::kWord) continue;
    if (const ClassDefinition* found = syntax_.FindClass(syntax_.token(i).text)) return found;
  }
  return nullptr;
}

/// The class of a variable, parameter or member; "" if its declaration is not found.
std::string HostScope::ClassOf(TokenRange object, int depth) const {
  const std::string type = TypeOfObject(object, depth);
  const ClassDefinition* of = syntax_.FindClass(type);
  return of == nullptr ? "" : of->name;
}

/// The type of an object as written, e.g. "Buffer<float>".
std::string HostScope::TypeOfObject(TokenRange object, int depth) const {
  constexpr int kMostMembers = 8;
  object = BareObject(syntax_, object);
  if (object.empty() || depth > kMostMembers) return "";
  const size_t last = object.end - 1;
  const std::string name(syntax_.token(last).text);
  const bool own = function_ < syntax_.functions.size() &&
                   !syntax_.functions[function_].of_class.empty();
  if (name == "this" && own)
    return pin_ && !pin_->made.empty() ? pin_->made : syntax_.functions[function_].of_class;
  if (object.begin < last &&
      (syntax_.token(last - 1).Is(".") || syntax_.token(last - 1).Is("->"))) {
    const ClassDefinition* of = syntax_.FindClass(
        TypeOfObject({object.begin, last - 1}, depth + 1));
    const ClassField* field = syntax_.FindField(of, name);
    return field ? std::string(syntax_.Text(field->type)) : "";
  }
  if (object.begin != last) return "";
  if (const auto known = objects_.find(name); known != objects_.end()) return known->second.type;
  if (const auto made = definitions_.find(name); made != definitions_.end())
    return TypeMade(made->second);
  if (function_ >= syntax_.functions.size()) return "";
  for (const TokenRange& parameter :
       SplitArguments(syntax_, syntax_.functions[function_].parameters, true)) {
    size_t end = parameter.begin;
    while (end < parameter.end && !syntax_.token(end).Is("=")) ++end;
    if (end > parameter.begin && syntax_.token(end - 1).Is(name))
      return TypeNamedIn({parameter.begin, end - 1});
  }
  const ClassField* field = FieldOfThis(name);
  return field ? std::string(syntax_.Text(field->type)) : "";
}

/// The first class of the source that the tokens name, with its template arguments.
std::string HostScope::TypeNamedIn(TokenRange range) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (syntax_.token(i).kind != Token::Kind::kWord ||
        syntax_.FindClass(syntax_.token(i).text) == nullptr)
      continue;
    const bool arguments = i + 1 < range.end && syntax_.token(i + 1).Is("<");
    return std::string(syntax_.Text({i, arguments ? MatchingClose(syntax_, i + 1) + 1 : i + 1}));
  }
  return "";
}

/// The type of `Type(…)`, `new Type(…)`, `std::make_unique<Type>(…)`, or of a function's result.
std::string HostScope::TypeMade(TokenRange value) const {
  size_t open = value.begin;
  while (open < value.end && !syntax_.token(open).Is("(") && !syntax_.token(open).Is("{")) ++open;
  if (std::string type = TypeNamedIn({value.begin, open}); !type.empty()) return type;
  if (open == value.begin || open >= value.end) return "";
  for (const size_t f :
       Callees(open - 1, {}, SplitArguments(syntax_, {open + 1, value.end - 1}, true).size()))
    return TypeNamedIn(
        {syntax_.functions[f].whole.begin, syntax_.functions[f].parameters.begin - 2});
  return "";
}

bool HostScope::IsFunction(std::string_view name) const {
  return std::ranges::find(syntax_.functions, name, &HostFunction::name) != syntax_.functions.end();
}

/// True for a floating-point parameter, e.g. `float alpha`.
bool HostScope::IsRealParameter(std::string_view name) const {
  if (function_ >= syntax_.functions.size()) return false;
  for (const TokenRange& one :
       SplitArguments(syntax_, syntax_.functions[function_].parameters, true)) {
    if (one.end < one.begin + 2 || !syntax_.token(one.end - 1).Is(name)) continue;
    return IsRealType(std::string(syntax_.token(one.end - 2).text));
  }
  return false;
}

bool HostScope::IsRealType(const std::string& name) const {
  const auto alias = syntax_.FindAlias(name);
  const auto type = ParseCType(alias == syntax_.aliases.end() ? name : alias->second);
  return type && IsFloat(type->dtype);
}

/// True if a variable, parameter or member is floating point, or its value is. A division of it is
/// then not one of integers.
bool HostScope::IsReal(const std::string& name, const std::string& value) const {
  const auto type = types_.find(name);
  const ClassField* field = FieldOfThis(name);
  if (type != types_.end() ? IsRealType(type->second) : IsRealParameter(name)) return true;
  if (field != nullptr && IsRealType(std::string(syntax_.token(field->type.end - 1).text)))
    return true;
  Dims leaves;
  for (const auto& [leaf, of] : *leaves_) leaves[leaf] = of.value;
  const auto parsed = Expr::Parse(value);
  const auto now = parsed ? parsed->Evaluate(Bindings(leaves))
                          : Result<Value>(std::unexpected(parsed.error()));
  return now && std::holds_alternative<double>(*now);
}

/// Notes an object, e.g. `Solver solver(nx, ny);` or `Params p{…}, q;`.
void HostScope::CollectObject(size_t name, size_t end) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < end && syntax_.token(i).Is(text);
  };
  const bool ends = is(name + 1, ";") || is(name + 1, ",") || is(name + 1, "(") ||
                    is(name + 1, "{");
  const bool listed = is(name + 1, "=") && is(name + 2, "{");
  if ((!ends && !listed) || name == 0) return;
  const std::string type = DeclaredClass(name);
  if (type.empty()) return;
  const size_t open = listed ? name + 2 : name + 1;
  const bool given = is(open, "(") || is(open, "{");
  objects_[std::string(syntax_.token(name).text)] = {
      type,
      given ? TokenRange{open + 1, std::min(MatchingClose(syntax_, open), end)} : TokenRange{}};
}

/// The class in the declaration of a name, which may follow other names.
std::string HostScope::DeclaredClass(size_t name) const {
  size_t begin = name;
  int nested = 0;
  while (begin > syntax_.functions[function_].body.begin) {
    const Token& token = syntax_.token(begin - 1);
    nested += (token.Is(")") || token.Is("}") || token.Is("]")) -
              (token.Is("(") || token.Is("{") || token.Is("["));
    if (nested < 0 || (nested == 0 && (token.Is(";") || token.Is("}")))) break;
    --begin;
  }
  for (size_t i = begin; i < name; ++i) {
    const Token& token = syntax_.token(i);
    const bool qualifies = token.Is("::") || syntax_.token(i + 1).Is("::");
    if (qualifies || token.Is("const") || token.Is("constexpr") || token.Is("static") ||
        token.Is("struct"))
      continue;
    if (token.kind != Token::Kind::kWord || syntax_.FindClass(token.text) == nullptr) return "";
    const size_t end = syntax_.token(i + 1).Is("<") ? MatchingClose(syntax_, i + 1) + 1 : i + 1;
    const bool declares = end == name || (end < name && syntax_.token(name - 1).Is(","));
    return declares ? std::string(syntax_.Text({i, end})) : "";
  }
  return "";
}

/// Notes a structured binding, e.g. auto [grid, block] = Shape(n);
void HostScope::CollectBound(size_t bracket, size_t end) {
  const size_t close = MatchingClose(syntax_, bracket);
  if (close + 1 >= end || !syntax_.token(close + 1).Is("=")) return;
  size_t stop = close + 2;
  while (stop < end && !syntax_.token(stop).Is(";")) ++stop;
  size_t place = 0;
  for (const TokenRange& one : SplitArguments(syntax_, {bracket + 1, close}, false))
    bound_[std::string(syntax_.Text(one))] = {{close + 2, stop}, place++};
}
}  // namespace atunner
