// The values of a function's parameters by its callers, and whether a place of it is reached.
#include <algorithm>

#include "atunner/intake/host/enclosing_conditions.h"
#include "atunner/intake/host/host_objects.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

constexpr int kMostCallers = 3;

/// True if the function is main or is named in another function. In a file without a main it is
/// always true, since the caller is elsewhere.
bool IsCalled(const CudaSyntax& syntax, size_t function) {
  bool has_main = false;
  for (size_t f = 0; f < syntax.functions.size(); ++f) {
    if (syntax.functions[f].name == "main") has_main = true;
    const TokenRange body = syntax.functions[f].body;
    for (size_t i = body.begin; f != function && i < body.end; ++i) {
      if (syntax.token(i).Is(syntax.functions[function].name)) return true;
    }
  }
  return !has_main || syntax.functions[function].name == "main";
}

}  // namespace

/// True if the value of the range is known to be the number.
std::optional<int64_t> HostScope::NumberNow(TokenRange range) {
  const auto before = *leaves_;
  const std::string unknown = *unknown_;
  const auto text = Convert(Copy(range), 0);
  const auto expr = text ? Expr::Parse(*text) : Result<Expr>(std::unexpected(text.error()));
  Dims values;
  for (const auto& [name, leaf] : *leaves_) values[name] = leaf.value;
  *leaves_ = before;
  *unknown_ = unknown;
  const auto value = expr ? expr->Evaluate(Bindings(values))
                          : Result<Value>(std::unexpected(expr.error()));
  if (!value) return std::nullopt;
  const bool number = std::holds_alternative<int64_t>(*value);
  return number ? std::get<int64_t>(*value) : static_cast<int64_t>(ToDouble(*value) != 0);
}

bool HostScope::IsReached() {
  if (function_ >= syntax_.functions.size()) return true;
  return IsCalled(syntax_, function_) && ConditionsMayHold();
}

/// True if an earlier place is known not to be reached whenever this one is.
bool HostScope::IsRuledOut(size_t place) const {
  if (function_ >= syntax_.functions.size() || *scopes_left_ <= 0) return false;
  if (ConditionsAround(syntax_, syntax_.functions[function_].body, place).empty()) return false;
  HostScope there(*this, function_, place, level_);
  there.pin_ = pin_;
  return !there.ConditionsMayHold();
}

bool HostScope::ConditionsMayHold() {
  for (const EnclosingCondition& one :
       ConditionsAround(syntax_, syntax_.functions[function_].body, position_)) {
    const auto value = NumberNow(one.value);
    if (!value) continue;
    if (one.cases.empty() && (*value != 0) != one.holds) return false;
    if (one.cases.empty()) continue;
    bool met = false;
    for (const TokenRange& label : one.cases) {
      const auto number = NumberNow(label);
      met |= !number || *number == *value;
    }
    if (met != one.holds) return false;
  }
  return true;
}

/// The call whose function name is at token `name`.
std::optional<HostScope::Call> HostScope::CallAt(size_t name) const {
  Call call{nullptr, {}, {}, ObjectBefore(syntax_, name), ""};
  size_t open = name + 1;
  if (open < syntax_.lexed.tokens.size() && syntax_.token(open).Is("<")) {
    const size_t close = MatchingClose(syntax_, open);
    call.template_args = SplitArguments(syntax_, {open + 1, close}, true);
    open = close + 1;
  }
  if (open >= syntax_.lexed.tokens.size() || !syntax_.token(open).Is("(")) return std::nullopt;
  call.arguments = SplitArguments(syntax_, {open + 1, MatchingClose(syntax_, open)}, true);
  return call;
}

/// The construction of an object whose class is at token `type`: `Solver solver(nx)`, `Solver(nx)`,
/// `new Solver{nx}`, `std::make_unique<Solver>(nx)` or `Solver solver;`.
std::optional<HostScope::Call> HostScope::MakingAt(size_t type) const {
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
  };
  size_t open = type + 1;
  if (is(open, "<")) open = MatchingClose(syntax_, open) + 1;
  Call call{nullptr, {}, {}, {}, std::string(syntax_.Text({type, open}))};
  if (is(open, ">")) ++open;
  const bool named = open < syntax_.lexed.tokens.size() &&
                     syntax_.token(open).kind == Token::Kind::kWord;
  if (named) ++open;
  if (named && (is(open, ";") || is(open, ","))) return call;
  if (!is(open, "(") && !is(open, "{")) return std::nullopt;
  call.arguments = SplitArguments(syntax_, {open + 1, MatchingClose(syntax_, open)}, true);
  return call;
}

/// The first call of the function with at least so many arguments that is reached, else the first
/// one.
std::optional<HostScope::Call> HostScope::CallWith(size_t template_args, size_t arguments) const {
  const auto enough = [&](const Call& call) {
    return call.template_args.size() >= template_args && call.arguments.size() >= arguments;
  };
  if (pin_) return enough(*pin_) ? pin_ : std::nullopt;
  if (function_ >= syntax_.functions.size() || level_ >= kMostCallers || *scopes_left_ <= 0)
    return std::nullopt;
  const HostFunction& function = syntax_.functions[function_];
  std::optional<Call> first;
  for (size_t f = 0; f < syntax_.functions.size(); ++f) {
    if (f == function_) continue;
    const TokenRange body = syntax_.functions[f].body;
    for (size_t i = body.begin; i + 1 < body.end; ++i) {
      if (!syntax_.token(i).Is(function.name)) continue;
      auto call = function.constructor ? MakingAt(i) : CallAt(i);
      if (!call || !enough(*call)) continue;
      if (function.of_class.empty() != call->object.empty() && !function.constructor &&
          (function.of_class.empty() ||
           !syntax_.IsA(syntax_.functions[f].of_class, function.of_class)))
        continue;  // another function of that name
      call->scope.reset(new HostScope(*this, f, i, level_ + 1));
      const std::string of = call->object.empty() ? "" : call->scope->ClassOf(call->object, 0);
      if (!of.empty() && !syntax_.IsA(of, function.of_class)) continue;
      if (call->scope->IsReached()) return call;
      if (!first) first = std::move(call);
    }
  }
  return first;
}

/// The argument of a parameter, or of a template parameter, in the first call.
std::optional<std::pair<std::shared_ptr<HostScope>, TokenRange>> HostScope::InCaller(
    const std::string& name) const {
  if (function_ >= syntax_.functions.size() || (!pin_ && level_ >= kMostCallers))
    return std::nullopt;
  const HostFunction& function = syntax_.functions[function_];
  for (size_t t = 0; t < function.templates.size(); ++t) {
    if (function.templates[t].name != name) continue;
    auto call = CallWith(t + 1, 0);
    if (call) return std::pair(std::move(call->scope), call->template_args[t]);
  }
  const std::vector<TokenRange> parameters = SplitArguments(syntax_, function.parameters, true);
  for (size_t p = 0; p < parameters.size(); ++p) {
    size_t last = parameters[p].end;
    for (size_t i = parameters[p].begin; i < parameters[p].end; ++i) {
      if (syntax_.token(i).Is("=")) last = std::min(last, i);
    }
    if (last == parameters[p].begin || syntax_.token(last - 1).text != name) continue;
    if (auto call = CallWith(0, p + 1))
      return std::pair(std::move(call->scope), call->arguments[p]);
    if (last < parameters[p].end)  // a default argument
      return std::pair(std::shared_ptr<HostScope>(new HostScope(*this, SIZE_MAX, 0, level_ + 1)),
                       TokenRange{last + 1, parameters[p].end});
  }
  return std::nullopt;
}

std::string HostScope::TypeNamed(const std::string& name) const {
  if (function_ >= syntax_.functions.size()) return name;
  const HostFunction& function = syntax_.functions[function_];
  const auto named = std::ranges::find(function.templates, name, &TemplateParameter::name);
  if (named == function.templates.end()) return TypeOfClass(name);
  if (named->type != "typename" && named->type != "class") return name;
  const auto index = static_cast<size_t>(named - function.templates.begin());
  if (const auto call = CallWith(index + 1, 0))
    return call->scope->TypeNamed(std::string(syntax_.Text(call->template_args[index])));
  const std::vector<TokenRange> parameters = SplitArguments(syntax_, function.parameters, true);
  const auto call = CallWith(0, 0);
  for (size_t p = 0; call && p < std::min(parameters.size(), call->arguments.size()); ++p) {
    bool named_here = false, pointer = false;
    for (size_t i = parameters[p].begin; i < parameters[p].end; ++i) {
      named_here |= syntax_.token(i).Is(name);
      pointer |= syntax_.token(i).Is("*");
    }
    if (!named_here) continue;
    if (std::string type = call->scope->TypeOf(call->arguments[p], pointer); !type.empty())
      return type;
  }
  return named->fallback.empty() ? name : named->fallback;
}

/// The meaning of a name in the function's class: an alias, or a template parameter.
std::string HostScope::TypeOfClass(const std::string& name) const {
  const ClassDefinition* own = syntax_.FindClass(syntax_.functions[function_].of_class);
  if (own == nullptr) return name;
  if (const auto alias = own->aliases.find(name); alias != own->aliases.end())
    return WithConstants(alias->second);
  const auto parameter = std::ranges::find(own->templates, name, &TemplateParameter::name);
  if (parameter == own->templates.end()) return name;
  const auto call = CallWith(0, 0);
  if (!call) return name;
  const std::string made = call->object.empty() ? call->made
                                                : call->scope->TypeOfObject(call->object, 0);
  const CudaSyntax type = ParseCuda(made);
  for (size_t i = 0; i < type.lexed.tokens.size(); ++i) {
    if (!type.token(i).Is("<")) continue;
    const auto arguments = SplitArguments(type, {i + 1, MatchingClose(type, i)}, true);
    const auto index = static_cast<size_t>(parameter - own->templates.begin());
    if (index < arguments.size())
      return call->scope->TypeNamed(std::string(type.Text(arguments[index])));
  }
  return parameter->fallback.empty() ? name : parameter->fallback;
}

/// A type with the class's constants replaced by their values, since device code may lack the
/// class.
std::string HostScope::WithConstants(const std::string& type) const {
  std::string text;
  for (const Token& token : Lex(type).tokens) {
    const ClassField* field = token.kind == Token::Kind::kWord ? FieldOfThis(token.text) : nullptr;
    const auto value = field ? Self()->NumberNow(field->value) : std::nullopt;
    text += value ? std::to_string(*value) : std::string(token.text);
    if (token.Is(",")) text += ' ';
  }
  return text;
}

std::string HostScope::TypeOf(TokenRange range, bool pointer) {
  const auto buffer = BufferOf(range, 0);
  if (pointer) return buffer ? buffer->type : "";
  if (buffer || range.end != range.begin + 1) return "";
  const std::string name(syntax_.Text(range));
  if (const auto type = types_.find(name); type != types_.end()) return TypeNamed(type->second);
  const auto above = InCaller(name);
  return above ? above->first->TypeOf(above->second, pointer) : "";
}

/// The value of a member by its declaration at a token: `kTile = …` or `bytes() { return …; }`.
TokenRange HostScope::ValueOfMember(size_t name) const {
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
  };
  size_t begin = name + 2;
  if (is(name + 1, "(") && is(name + 2, ")")) {
    size_t brace = name + 3;
    while (is(brace, "const") || is(brace, "noexcept")) ++brace;
    if (!is(brace, "{") || !is(brace + 1, "return")) return {};
    begin = brace + 2;
  } else if (!is(name + 1, "=")) {
    return {};
  }
  size_t end = begin;
  while (end < syntax_.lexed.tokens.size() && !is(end, ";") && !is(end, ","))
    end = is(end, "(") ? MatchingClose(syntax_, end) + 1 : end + 1;
  return {begin, end};
}

/// The value of Config<16, 8>::kTile, a static constexpr member of a structure or structure
/// template.
std::optional<std::string> HostScope::StaticMember(const std::string& type, std::string_view member,
                                                   int depth) {
  texts_->push_back(type);
  const CudaSyntax named = ParseCuda(texts_->back());
  size_t last = 0;
  while (last + 2 < named.lexed.tokens.size() && named.token(last + 1).Is("::")) last += 2;
  if (last >= named.lexed.tokens.size()) return std::nullopt;
  std::vector<TokenRange> arguments;
  if (last + 1 < named.lexed.tokens.size() && named.token(last + 1).Is("<"))
    arguments = SplitArguments(named, {last + 2, MatchingClose(named, last + 1)}, true);
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
  };
  for (size_t i = 1; i + 1 < syntax_.lexed.tokens.size(); ++i) {
    if (!is(i, named.token(last).text) || !is(i + 1, "{") ||
        (!is(i - 1, "struct") && !is(i - 1, "class")))
      continue;
    std::vector<TemplateParameter> parameters;
    if (i > 1 && is(i - 2, ">")) {
      size_t head = i - 2;
      while (head > 0 && !is(head, "template")) --head;
      parameters = ParseTemplateParameters(syntax_, {head + 2, i - 2});
    }
    const size_t close = MatchingClose(syntax_, i + 1);
    for (size_t at = i + 2; at < close; ++at) {
      const TokenRange written = is(at, member) ? ValueOfMember(at) : TokenRange{};
      if (written.empty()) continue;
      Tokens value;
      for (size_t t = written.begin; t < written.end; ++t) {
        const auto found = std::ranges::find(parameters, syntax_.token(t).text,
                                             &TemplateParameter::name);
        const auto index = static_cast<size_t>(found - parameters.begin());
        if (index >= arguments.size()) {
          value.push_back(syntax_.token(t));
          continue;
        }
        for (size_t a = arguments[index].begin; a < arguments[index].end; ++a)
          value.push_back(named.token(a));
      }
      auto text = Convert(value, depth + 1);
      return text ? std::optional(*std::move(text)) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace atunner
