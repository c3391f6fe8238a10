// Finds the values of object members: `config.grid`, `u_` in a member function, `image->width()`.
#include "atunner/intake/host/host_objects.h"

#include <algorithm>

#include "atunner/intake/host/enclosing_conditions.h"

namespace atunner {
namespace {

constexpr int kMostSteps = 40;  // steps from a member to the expression of its value

std::string Joined(const std::vector<std::string>& path, size_t count) {
  std::string key;
  for (size_t i = 0; i < count; ++i) key += (i == 0 ? "" : ".") + path[i];
  return key;
}

std::vector<std::string> Longer(std::string first, const std::vector<std::string>& path) {
  std::vector<std::string> longer{std::move(first)};
  longer.insert(longer.end(), path.begin(), path.end());
  return longer;
}

/// The index of a list element that "#2" names.
std::optional<size_t> PlaceNamed(const std::string& member) {
  if (!member.starts_with("#")) return std::nullopt;
  return static_cast<size_t>(std::stoul(member.substr(1)));
}

/// True for functions that return their argument, such as std::move.
bool PassesOn(std::string_view callee) {
  static constexpr std::string_view kNames[] = {
      "move",        "forward",          "shared_ptr",       "unique_ptr",
      "static_cast", "reinterpret_cast", "raw_pointer_cast", "ref",
      "cref",        "to_address",       "exchange"};
  return std::ranges::find(kNames, callee) != std::end(kNames);
}

/// True for member functions that return the owned object, such as get() of a smart pointer.
bool GivesOwned(std::string_view callee) {
  return callee == "get" || callee == "data" || callee == "begin" || callee == "value";
}

}  // namespace

std::shared_ptr<HostScope> HostScope::Self() const { return std::make_shared<HostScope>(*this); }

/// The scope of a function's body for this call.
HostScope HostScope::Inside(size_t function, Call call) const {
  HostScope inside(*this, function, syntax_.functions[function].body.end, level_ + 1);
  if (!call.scope) call.scope = Self();
  inside.pin_ = std::move(call);
  return inside;
}

// --- from an expression to the expression of its value ---

std::optional<HostScope::Found> HostScope::MemberOf(TokenRange object, const Path& path,
                                                    int depth) const {
  if (depth > kMostSteps || *scopes_left_ <= 0) return std::nullopt;
  object = BareObject(syntax_, object);
  if (object.empty() || object.end > syntax_.lexed.tokens.size()) return std::nullopt;
  const size_t last = object.end - 1;
  const auto is = [&](size_t i, std::string_view text) {
    return i > object.begin && syntax_.token(i - 1).Is(text);
  };
  const Token& token = syntax_.token(last);
  if (token.Is(")") || token.Is("}") || token.Is("]")) {
    size_t open = object.begin;
    for (; open < last; ++open) {
      if (!syntax_.token(open).Is("(") && !syntax_.token(open).Is("[") &&
          !syntax_.token(open).Is("{"))
        continue;
      const size_t close = MatchingClose(syntax_, open);
      if (close == last) break;
      open = close;
    }
    if (open >= last) return std::nullopt;
    if (!token.Is("]")) return Returned(object, open, path, depth + 1);
    // One of several equal buffers.
    auto found = MemberOf({object.begin, open}, path, depth + 1);
    return found && !found->allocation.empty() ? found : std::nullopt;
  }
  if (token.kind != Token::Kind::kWord) return std::nullopt;
  if (token.Is("this")) return last == object.begin ? OfThis(path, depth + 1) : std::nullopt;
  const Path longer = Longer(std::string(token.text), path);
  if (is(last, ".") || is(last, "->")) return MemberOf({object.begin, last - 1}, longer, depth + 1);
  if (last > object.begin && !is(last, "::")) return std::nullopt;
  return Named(longer, depth + 1);
}

/// The member `path` of `function(…)`, `object.function(…)`, `Type{…}` or `{…}`, whose bracket is
/// at token `open`.
std::optional<HostScope::Found> HostScope::Returned(TokenRange object, size_t open,
                                                    const Path& path, int depth) const {
  const TokenRange list{open + 1, object.end - 1};
  Call call{Self(), {}, SplitArguments(syntax_, list, true), {}, ""};
  size_t name = open;
  if (name > object.begin && syntax_.token(name - 1).Is(">")) {
    size_t angle = object.begin;
    while (angle < name &&
           !(syntax_.token(angle).Is("<") && MatchingClose(syntax_, angle) == name - 1))
      ++angle;
    if (angle >= name) return std::nullopt;
    call.template_args = SplitArguments(syntax_, {angle + 1, name - 1}, true);
    name = angle;
  }
  if (name == object.begin) return ElementOf(list, nullptr, path, depth + 1);
  --name;
  const std::string callee(syntax_.token(name).text);
  call.object = ObjectBefore(syntax_, name);
  if (call.object.begin < object.begin) call.object = {};
  for (size_t i = object.begin; call.object.empty() && i < name; ++i) {
    if (syntax_.token(i).kind != Token::Kind::kWord && !syntax_.token(i).Is("::"))
      return std::nullopt;
  }
  if (!call.object.empty() && call.object.begin != object.begin) return std::nullopt;
  if (call.object.empty()) {
    if (callee == "dim3" && path.empty()) return Found{Self(), object, "", ""};
    if (syntax_.FindClass(callee) != nullptr)
      return Made(std::string(syntax_.Text({name, open})), list, path, depth + 1);
    if ((callee == "make_unique" || callee == "make_shared") && call.template_args.size() == 1)
      return Made(std::string(syntax_.Text(call.template_args[0])), list, path, depth + 1);
  } else if (path.empty() && (callee == "size" || callee == "numel" || callee == "length")) {
    if (auto count = CountOfContainer(call.object, depth + 1)) return count;
  }
  const std::vector<size_t> callees = Callees(name, call.object, call.arguments.size());
  if (callees.size() == 1) return ReturnedBy(callees[0], std::move(call), path, depth + 1);
  if (!callees.empty()) return std::nullopt;
  if (!call.object.empty())
    return GivesOwned(callee) ? MemberOf(call.object, path, depth + 1) : std::nullopt;
  // std::tuple(a, b)
  if (!path.empty() && PlaceNamed(path[0])) return ElementOf(list, nullptr, path, depth + 1);
  const bool passes = PassesOn(callee) || syntax_.FindAlias(callee) != syntax_.aliases.end();
  if (!passes || call.arguments.empty()) return std::nullopt;
  if (path.empty()) return Found{Self(), call.arguments[0], "", ""};
  return MemberOf(call.arguments[0], path, depth + 1);
}

std::optional<HostScope::Found> HostScope::ReturnedBy(size_t function, Call call, const Path& path,
                                                      int depth) const {
  if (level_ >= kMostLevels) return std::nullopt;
  const auto result = Inside(function, std::move(call)).ReturnedHere();
  if (!result || path.empty()) return result;
  const TokenRange value = result->range;
  const HostFunction& of = syntax_.functions[function];
  auto found = syntax_.token(value.begin).Is("{")
                   ? result->scope->ElementOf({value.begin + 1, value.end - 1},
                                              ClassIn({of.whole.begin, of.parameters.begin}), path,
                                              depth + 1)
                   : result->scope->MemberOf(value, path, depth + 1);
  if (found) found->name.clear();
  return found;
}

/// The expression that the function returns: that of the first return whose conditions hold;
/// nullopt if a condition is unknown.
std::optional<HostScope::Found> HostScope::ReturnedHere() const {
  const TokenRange body = syntax_.functions[function_].body;
  for (size_t i = body.begin; i < body.end; ++i) {
    if (!syntax_.token(i).Is("return")) continue;
    const std::shared_ptr<HostScope> here(new HostScope(*this, function_, i, level_));
    here->pin_ = pin_;
    if (!here->IsReached()) continue;
    for (const EnclosingCondition& one : ConditionsAround(syntax_, body, i)) {
      if (!here->NumberNow(one.value)) return std::nullopt;
    }
    size_t end = i + 1;
    while (end < body.end && !syntax_.token(end).Is(";")) {
      const bool opens = syntax_.token(end).Is("(") || syntax_.token(end).Is("{");
      end = opens ? MatchingClose(syntax_, end) + 1 : end + 1;
    }
    return end > i + 1 ? std::optional(Found{here, {i + 1, end}, "", ""}) : std::nullopt;
  }
  return std::nullopt;
}

/// The functions of the source that a call of that name may mean.
std::vector<size_t> HostScope::Callees(size_t name, TokenRange object, size_t arguments) const {
  const std::string own = function_ < syntax_.functions.size()
                              ? syntax_.functions[function_].of_class
                              : "";
  const std::string of = object.empty() ? "" : ClassOf(object, 0);
  std::vector<size_t> all;
  for (size_t f = 0; f < syntax_.functions.size(); ++f) {
    const HostFunction& function = syntax_.functions[f];
    if (!syntax_.token(name).Is(function.name) || function.constructor) continue;
    const bool callable = object.empty()
                              ? function.of_class.empty() || syntax_.IsA(own, function.of_class)
                              : !function.of_class.empty() &&
                                    (of.empty() || syntax_.IsA(of, function.of_class));
    if (!callable || !Accepts(syntax_, function, arguments)) continue;
    const auto same = [&](size_t other) {  // const T* data() const, and T* data()
      return syntax_.functions[other].of_class == function.of_class &&
             syntax_.Text(syntax_.functions[other].parameters) == syntax_.Text(function.parameters);
    };
    if (std::ranges::none_of(all, same)) all.push_back(f);
  }
  return all;
}

std::optional<HostScope::Found> HostScope::CountOfContainer(TokenRange object, int depth) const {
  object = BareObject(syntax_, object);
  if (object.end != object.begin + 1 || depth > kMostSteps) return std::nullopt;
  const std::string name(syntax_.Text(object));
  if (const auto count = containers_.find(name); count != containers_.end())
    return Found{Self(), count->second, "", ""};
  const auto above = InCaller(name);
  return above ? above->first->CountOfContainer(above->second, depth + 1) : std::nullopt;
}

// --- names ---

/// The value of `path` in this scope: assigned before, or a member of a variable, of an argument or
/// of this object.
std::optional<HostScope::Found> HostScope::Named(const Path& path, int depth) const {
  if (depth > kMostSteps || *scopes_left_ <= 0) return std::nullopt;
  if (auto found = Written(path, depth + 1)) return found;
  const Path rest(path.begin() + 1, path.end());
  if (const auto bound = bound_.find(path[0]); bound != bound_.end())
    return MemberOf(bound->second.first, Longer("#" + std::to_string(bound->second.second), rest),
                    depth + 1);
  if (const auto object = objects_.find(path[0]); object != objects_.end()) {
    if (rest.empty()) return std::nullopt;
    auto found = Made(object->second.type, object->second.made_of, rest, depth + 1);
    if (found && found->name.empty()) found->name = Joined(path, path.size());
    return found;
  }
  if (const auto above = InCaller(path[0])) {
    if (rest.empty()) return Found{above->first, above->second, "", ""};
    return above->first->MemberOf(above->second, rest, depth + 1);
  }
  return FieldOfThis(path[0]) == nullptr ? OfFile(path, depth + 1) : OfThis(path, depth + 1);
}

/// The value of a file-level variable: as this function's callers or the functions called before
/// leave it, else its initialiser.
std::optional<HostScope::Found> HostScope::OfFile(const Path& path, int depth) const {
  const ClassField* variable = syntax_.FindVariable(path[0]);
  if (variable == nullptr || depth > kMostSteps || IsParameter(path[0])) return std::nullopt;
  if (const auto call = CallWith(0, 0)) {
    auto found = call->scope->Written(path, depth + 1);
    return found ? found : call->scope->OfFile(path, depth + 1);
  }
  const HostScope outside(*this, SIZE_MAX, 0, level_);
  return outside.OfField(*variable, variable->value, {path.begin() + 1, path.end()}, depth + 1);
}

/// The last value that this function, or a function that it calls, assigns before this place. With
/// `of_object` the path is a member of this object, even if a parameter has the same name.
std::optional<HostScope::Found> HostScope::Written(const Path& path, int depth,
                                                   bool of_object) const {
  if (depth > kMostSteps || *scopes_left_ <= 0) return std::nullopt;
  const bool hidden = of_object && IsParameter(path[0]);
  for (size_t length = path.size(); length > 0; --length) {
    const std::string key = (hidden ? "this." : "") + Joined(path, length);
    const Path rest(path.begin() + static_cast<std::ptrdiff_t>(length), path.end());
    if (rest.empty() && allocations_.contains(key)) return Found{Self(), {}, key, key};
    auto found = rest.empty() ? std::nullopt : WrittenByCalls(key, rest, depth + 1);
    const auto value = found ? std::nullopt : Definition(key);
    if (value) {
      if (rest.empty()) return Found{Self(), *value, "", key};
      found = MemberOf(*value, rest, depth + 1);
    }
    if (!found) continue;
    if (found->name.empty()) found->name = Joined(path, path.size());
    return found;
  }
  const bool shared = FieldOfThis(path[0]) != nullptr ||
                      (syntax_.FindVariable(path[0]) && !IsParameter(path[0]));
  return shared ? WrittenByCalls("", path, depth + 1) : std::nullopt;
}

/// The value assigned by functions that get the object or are its members. If `object` is empty it
/// is this object, or a file-level variable.
std::optional<HostScope::Found> HostScope::WrittenByCalls(const std::string& object,
                                                          const Path& rest, int depth) const {
  if (function_ >= syntax_.functions.size() || level_ >= kMostLevels || depth > kMostSteps)
    return std::nullopt;
  const TokenRange body = syntax_.functions[function_].body;
  for (size_t i = std::min(position_, body.end); i-- > body.begin;) {
    if (syntax_.token(i).kind != Token::Kind::kWord || !IsFunction(syntax_.token(i).text)) continue;
    const auto call = CallAt(i);
    if (!call || IsRuledOut(i)) continue;
    for (const size_t callee : Callees(i, call->object, call->arguments.size())) {
      if (callee == function_) continue;
      const HostFunction& function = syntax_.functions[callee];
      const bool field = object.empty() && FieldOfThis(rest[0]) != nullptr;
      const bool of_it = object.empty()
                             ? !field || (call->object.empty() && !function.of_class.empty())
                             : ObjectText(syntax_, call->object) == object;
      auto found = of_it ? Inside(callee, *call).Written(rest, depth + 1, field || !object.empty())
                         : std::nullopt;
      const auto parameters = SplitArguments(syntax_, function.parameters, true);
      for (size_t p = 0;
           !found && !object.empty() && p < std::min(parameters.size(), call->arguments.size());
           ++p) {
        if (ObjectText(syntax_, BareObject(syntax_, call->arguments[p])) != object ||
            parameters[p].empty())
          continue;
        const std::string name(syntax_.token(parameters[p].end - 1).text);
        found = Inside(callee, *call).Written(Longer(name, rest), depth + 1);
      }
      if (!found) continue;
      found->name.clear();
      return found;
    }
  }
  return std::nullopt;
}

bool HostScope::IsParameter(std::string_view name) const {
  if (function_ >= syntax_.functions.size()) return false;
  return std::ranges::any_of(SplitArguments(syntax_, syntax_.functions[function_].parameters, true),
                             [&](TokenRange one) { return syntax_.token(one.end - 1).Is(name); });
}

// --- objects ---

const ClassField* HostScope::FieldOfThis(std::string_view name) const {
  if (function_ >= syntax_.functions.size() || syntax_.functions[function_].of_class.empty())
    return nullptr;
  return syntax_.FindField(syntax_.FindClass(syntax_.functions[function_].of_class), name);
}

/// True for a constant such as `static constexpr int kTile = 16`, which is fixed in the binary.
bool HostScope::IsConstantOfThis(std::string_view name) const {
  const ClassField* field = FieldOfThis(name);
  for (size_t i = field ? field->type.begin : 0; field && i < field->type.end; ++i) {
    if (syntax_.token(i).Is("constexpr") || syntax_.token(i).Is("static")) return true;
  }
  return false;
}

/// The class that declares the member: this function's class or one of its base classes.
std::string HostScope::ClassWith(std::string_view field) const {
  const ClassDefinition* of = syntax_.FindClass(syntax_.functions[function_].of_class);
  while (of != nullptr && of->FindField(field) == nullptr) {
    const ClassDefinition* base = syntax_.FindClass(of->base);
    if (base == nullptr || syntax_.FindField(base, field) == nullptr ||
        syntax_.IsA(base->name, of->name))
      return "";
    of = base;
  }
  return of == nullptr ? "" : of->name;
}

/// A member of the object on which this function is called, or which this constructor makes.
std::optional<HostScope::Found> HostScope::OfThis(const Path& path, int depth) const {
  if (path.empty() || depth > kMostSteps || FieldOfThis(path[0]) == nullptr) return std::nullopt;
  if (syntax_.functions[function_].constructor) return Initialised(path, depth + 1);
  const auto call = CallWith(0, 0);
  if (!call) return Initialised(path, depth + 1);
  if (!call->object.empty()) return call->scope->MemberOf(call->object, path, depth + 1);
  if (auto found = call->scope->Written(path, depth + 1, true)) return found;
  return call->scope->OfThis(path, depth + 1);
}

/// The value of a member by this constructor's initialiser list, or by the member's declaration.
std::optional<HostScope::Found> HostScope::Initialised(const Path& path, int depth) const {
  const HostFunction& function = syntax_.functions[function_];
  const ClassField* field = FieldOfThis(path[0]);
  if (field == nullptr) return std::nullopt;
  const Path rest(path.begin() + 1, path.end());
  for (const TokenRange& one : SplitArguments(syntax_, function.initialisers, true)) {
    const std::string name(syntax_.token(one.begin).text);
    const bool delegates = name == function.of_class;
    const bool base = !delegates && syntax_.IsA(function.of_class, name) &&
                      syntax_.IsA(name, ClassWith(path[0]));
    if (!delegates && !base && name != path[0]) continue;
    const TokenRange value{one.begin + 2, one.end - 1};
    if (name == path[0]) return OfField(*field, value, rest, depth + 1);
    return Made(delegates && pin_ ? pin_->made : name, value, path, depth + 1);
  }
  return OfField(*field, field->value, rest, depth + 1);
}

std::optional<HostScope::Found> HostScope::OfField(const ClassField& field, TokenRange value,
                                                   const Path& rest, int depth) const {
  const std::string type(syntax_.Text(field.type));
  const bool object = syntax_.FindClass(type) != nullptr;
  if (rest.empty())
    return value.empty() ? std::nullopt : std::optional(Found{Self(), value, "", ""});
  if (value.empty() && !object) return std::nullopt;
  return object ? Made(type, value, rest, depth + 1) : MemberOf(value, rest, depth + 1);
}

/// A member of the object that `type` makes of its arguments.
std::optional<HostScope::Found> HostScope::Made(const std::string& type, TokenRange made_of,
                                                const Path& path, int depth) const {
  const ClassDefinition* of = syntax_.FindClass(type);
  if (depth > kMostSteps || level_ >= kMostLevels || *scopes_left_ <= 0 || path.empty())
    return std::nullopt;
  if (of == nullptr)
    return PlaceNamed(path[0]) ? ElementOf(made_of, nullptr, path, depth + 1) : std::nullopt;
  const std::vector<TokenRange> pieces = SplitArguments(syntax_, made_of, true);
  if (pieces.size() == 1 && ClassOf(pieces[0], 0) == of->name)
    return MemberOf(pieces[0], path, depth + 1);
  bool constructed = false;
  std::vector<size_t> constructors;
  for (size_t f = 0; f < syntax_.functions.size(); ++f) {
    const HostFunction& function = syntax_.functions[f];
    if (!function.constructor || function.of_class != of->name) continue;
    constructed = true;
    if (Accepts(syntax_, function, pieces.size()) && !Copies(syntax_, function))
      constructors.push_back(f);
  }
  if (!constructed) return ElementOf(made_of, of, path, depth + 1);
  if (constructors.size() != 1) return std::nullopt;
  const HostScope inside = Inside(constructors[0], {Self(), {}, pieces, {}, type});
  auto found = inside.Written(path, depth + 1, true);
  if (!found) found = inside.Initialised(path, depth + 1);
  if (found) found->name.clear();
  return found;
}

/// An element of a list, by the name of the member that it initialises or by its index ("#1").
std::optional<HostScope::Found> HostScope::ElementOf(TokenRange list, const ClassDefinition* of,
                                                     const Path& path, int depth) const {
  if (path.empty() || depth > kMostSteps) return std::nullopt;
  const Path rest(path.begin() + 1, path.end());
  const ClassField* field = of == nullptr ? nullptr : of->FindField(path[0]);
  const auto place = field ? std::optional(static_cast<size_t>(field - of->fields.data()))
                           : PlaceNamed(path[0]);
  if (!place) return std::nullopt;
  const std::vector<TokenRange> elements = SplitArguments(syntax_, list, true);
  TokenRange value = *place < elements.size() ? elements[*place] : TokenRange{};
  if (!elements.empty() && syntax_.token(elements[0].begin).Is(".")) {  // .grid = …
    value = {};
    for (const TokenRange& one : elements) {
      if (syntax_.token(one.begin + 1).Is(path[0])) value = {one.begin + 3, one.end};
    }
  }
  if (value.empty() && field) value = field->value;
  if (rest.empty())
    return value.empty() ? std::nullopt : std::optional(Found{Self(), value, "", ""});
  if (!value.empty() && syntax_.token(value.begin).Is("{") && field)
    return OfField(*field, {value.begin + 1, value.end - 1}, rest, depth + 1);
  if (value.empty()) return field ? OfField(*field, value, rest, depth + 1) : std::nullopt;
  return MemberOf(value, rest, depth + 1);
}

}  // namespace atunner
