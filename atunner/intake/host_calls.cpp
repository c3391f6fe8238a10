// What the callers of a function say of its parameters, and whether a place of it is reached at all.
#include <algorithm>

#include "atunner/intake/enclosing_conditions.h"
#include "atunner/intake/host_scope.h"
#include "atunner/model/expr.h"

namespace atunner {
namespace {

constexpr int kMostCallers = 3;

/// Is the function main, or named by another? Any is in a file without a main: who calls it is elsewhere.
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

/// Is a number what the range is, as far as it is known?
std::optional<int64_t> HostScope::NumberNow(TokenRange range) {
  const auto before = *leaves_;
  const std::string unknown = *unknown_;
  const auto text = Convert(Copy(range), 0);
  const auto expr = text ? Expr::Parse(*text) : Result<Expr>(std::unexpected(text.error()));
  Dims values;
  for (const auto& [name, leaf] : *leaves_) values[name] = leaf.value;
  *leaves_ = before;
  *unknown_ = unknown;
  const auto value = expr ? expr->Evaluate(Bindings(values)) : Result<Value>(std::unexpected(expr.error()));
  if (!value) return std::nullopt;
  const bool number = std::holds_alternative<int64_t>(*value);
  return number ? std::get<int64_t>(*value) : static_cast<int64_t>(ToDouble(*value) != 0);
}

bool HostScope::IsReached() {
  if (function_ >= syntax_.functions.size()) return true;
  if (!IsCalled(syntax_, function_)) return false;
  for (const EnclosingCondition& one : ConditionsAround(syntax_, syntax_.functions[function_].body, position_)) {
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

/// What the call whose function stands at token `name` says.
std::optional<HostScope::Pin> HostScope::CallAt(size_t name) const {
  Pin call{function_, name, {}, {}};
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

/// The first call of the function with at least so many arguments that is reached, or else the first.
std::optional<HostScope::Call> HostScope::CallWith(size_t template_args, size_t arguments) const {
  if (function_ >= syntax_.functions.size() || level_ >= kMostCallers) return std::nullopt;
  if (pin_) {
    if (pin_->template_args.size() < template_args || pin_->arguments.size() < arguments) return std::nullopt;
    std::unique_ptr<HostScope> scope(new HostScope(*this, pin_->function, pin_->token, level_ + 1));
    return Call{std::move(scope), pin_->template_args, pin_->arguments};
  }
  std::optional<Call> first;
  for (size_t f = 0; f < syntax_.functions.size(); ++f) {
    if (f == function_) continue;
    const TokenRange body = syntax_.functions[f].body;
    for (size_t i = body.begin; i + 1 < body.end; ++i) {
      if (!syntax_.token(i).Is(syntax_.functions[function_].name)) continue;
      auto found = CallAt(i);
      if (!found) continue;
      Call call{nullptr, std::move(found->template_args), std::move(found->arguments)};
      if (call.template_args.size() < template_args || call.arguments.size() < arguments) continue;
      call.scope.reset(new HostScope(*this, f, i, level_ + 1));
      if (call.scope->IsReached()) return call;
      if (!first) first = std::move(call);
    }
  }
  return first;
}

/// What a parameter of the function, or of the template that it is, stands for in the first call.
std::optional<std::pair<std::unique_ptr<HostScope>, TokenRange>> HostScope::InCaller(const std::string& name) const {
  if (function_ >= syntax_.functions.size() || level_ >= kMostCallers) return std::nullopt;
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
    if (auto call = CallWith(0, p + 1)) return std::pair(std::move(call->scope), call->arguments[p]);
    if (last < parameters[p].end)  // a default argument
      return std::pair(std::unique_ptr<HostScope>(new HostScope(*this, SIZE_MAX, 0, level_ + 1)),
                       TokenRange{last + 1, parameters[p].end});
  }
  return std::nullopt;
}

std::string HostScope::TypeNamed(const std::string& name) const {
  if (function_ >= syntax_.functions.size()) return name;
  const HostFunction& function = syntax_.functions[function_];
  const auto named = std::ranges::find(function.templates, name, &TemplateParameter::name);
  if (named == function.templates.end() || (named->type != "typename" && named->type != "class")) return name;
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
    if (std::string type = call->scope->TypeOf(call->arguments[p], pointer); !type.empty()) return type;
  }
  return named->fallback.empty() ? name : named->fallback;
}

std::string HostScope::TypeOf(TokenRange range, bool pointer) {
  const auto buffer = BufferOf(range);
  if (pointer) return buffer ? buffer->type : "";
  if (buffer || range.end != range.begin + 1) return "";
  const std::string name(syntax_.Text(range));
  if (const auto type = types_.find(name); type != types_.end()) return TypeNamed(type->second);
  const auto above = InCaller(name);
  return above ? above->first->TypeOf(above->second, pointer) : "";
}

/// Config<16, 8>::kTile, of `static constexpr int kTile = …` in a structure or a template of one.
std::optional<std::string> HostScope::StaticMember(const std::string& type, std::string_view member, int depth) {
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
    if (!is(i, named.token(last).text) || !is(i + 1, "{") || (!is(i - 1, "struct") && !is(i - 1, "class"))) continue;
    std::vector<TemplateParameter> parameters;
    if (i > 1 && is(i - 2, ">")) {
      size_t head = i - 2;
      while (head > 0 && !is(head, "template")) --head;
      parameters = ParseTemplateParameters(syntax_, {head + 2, i - 2});
    }
    for (size_t at = i + 2; at < MatchingClose(syntax_, i + 1); ++at) {
      if (!is(at, member) || !is(at + 1, "=")) continue;
      Tokens value;
      for (size_t t = at + 2; !is(t, ";") && !is(t, ",") && t < syntax_.lexed.tokens.size(); ++t) {
        const auto found = std::ranges::find(parameters, syntax_.token(t).text, &TemplateParameter::name);
        const auto index = static_cast<size_t>(found - parameters.begin());
        if (index >= arguments.size()) {
          value.push_back(syntax_.token(t));
          continue;
        }
        for (size_t a = arguments[index].begin; a < arguments[index].end; ++a) value.push_back(named.token(a));
      }
      auto text = Convert(value, depth + 1);
      return text ? std::optional(*std::move(text)) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace atunner
