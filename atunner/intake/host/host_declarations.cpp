#include "atunner/intake/host/host_declarations.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "atunner/intake/host/host_operators.h"

namespace atunner {
namespace {

using Kind = HostValue::Kind;

constexpr std::string_view kQualifiers[] = {"const",    "constexpr", "static",      "volatile",
                                            "register", "struct",    "__restrict__"};
constexpr std::string_view kStatements[] = {"return", "delete", "throw",   "goto", "case",
                                            "else",   "using",  "typedef", "new",  "default"};
constexpr size_t kMostElements = 64;  // elements of a list that are variables

bool IsOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// The token behind `std::vector<float>` or `unsigned`, from one word on.
size_t BehindWord(const CudaSyntax& syntax, size_t at, size_t end) {
  ++at;
  const Token& next = syntax.token(at);
  const bool shift = next.Is("<") && syntax.token(at + 1).Is("<");
  if (next.Is("<") && !shift) {
    const size_t close = MatchingClose(syntax, at);
    if (close < end) at = close + 1;
  }
  return at;
}

class Declarator {
 public:
  Declarator(HostState& state, HostFrame& frame, TokenRange type, bool named)
      : state_(state),
        syntax_(state.syntax),
        frame_(frame),
        type_(syntax_.Text(type)),
        named_(named) {
    // The element type of a container, e.g. std::vector<float>.
    if (const auto bound = frame.types.find(type_); bound != frame.types.end())
      type_ = bound->second;
    const size_t open = type_.find('<');
    if (open != std::string::npos && type_.ends_with('>'))
      element_ = ResolvedType(state, frame, type_.substr(open + 1, type_.size() - open - 2));
  }

  /// Adds `*name = value`, `name(arguments)`, `name{arguments}`, `name[extent]` or `name`.
  void Run(TokenRange piece) {
    const auto variable = std::make_shared<HostVariable>();
    size_t at = piece.begin;
    for (; at < piece.end && syntax_.token(at).kind != Token::Kind::kWord; ++at)
      variable->pointer |= Is(at, "*");
    while (at < piece.end && IsOneOf(syntax_.token(at).text, kQualifiers)) ++at;
    if (at >= piece.end) return;
    variable->name = syntax_.token(at).text;
    variable->type = element_.empty() ? type_ : element_;
    variable->pointer |= !element_.empty();
    variable->value = HostValue::Unknown(variable->pointer ? "" : variable->name);
    Initialise(*variable, {at + 1, piece.end});
    frame_.variables[variable->name] = variable;
    Elements(*variable);
  }

 private:
  bool Is(size_t i, std::string_view text) const { return syntax_.token(i).Is(text); }
  HostValue Value(TokenRange range) { return Evaluate(state_, frame_, range); }

  void Initialise(HostVariable& variable, TokenRange rest) {
    const size_t at = rest.begin;
    if (at < rest.end && Is(at, "[")) return Array(variable, rest);
    const bool assigned = at < rest.end && Is(at, "=");
    const bool bracketed = at < rest.end && (Is(at, "(") || Is(at, "{"));
    const TokenRange inside{at + 1,
                            assigned ? rest.end : std::min(MatchingClose(syntax_, at), rest.end)};
    if (type_ == "dim3" && !variable.pointer) return Extents(variable, inside, assigned, bracketed);
    if (!element_.empty()) {
      if (assigned || bracketed) Container(variable, inside);
    } else if (assigned || (bracketed && !inside.empty())) {
      Store(state_, variable, Value(inside), named_);
    }
  }

  /// dim3 grid(n / 16, 2), dim3 grid = {n, 1, 1}, dim3 grid = n, dim3 grid;
  void Extents(HostVariable& variable, TokenRange inside, bool assigned, bool bracketed) {
    HostValue value = HostValue::Extents({});
    if (assigned) {
      value = Value(inside);
      if (value.Is(Kind::kList)) value = HostValue::Extents(value.items);
      if (value.Is(Kind::kNumber)) value = HostValue::Extents({value});
    } else if (bracketed) {
      std::vector<HostValue> items;
      for (const TokenRange& one : SplitArguments(syntax_, inside, true))
        items.push_back(Value(one));
      value = items.size() == 1 && items[0].Is(Kind::kExtents) ? items[0]
                                                               : HostValue::Extents(items);
    }
    Store(state_, variable, std::move(value), named_);
  }

  /// float h[256], sizes[] = {64, 128};
  void Array(HostVariable& variable, TokenRange rest) {
    HostValue count = HostValue::Number("1");
    size_t at = rest.begin;
    bool open_extent = false;
    for (; at < rest.end && Is(at, "["); at = MatchingClose(syntax_, at) + 1) {
      const TokenRange extent{at + 1, MatchingClose(syntax_, at)};
      open_extent |= extent.empty();
      if (extent.empty()) continue;
      const HostValue one = Value(extent);
      count = at == rest.begin ? one : Combined(state_, "*", count, one);
    }
    if (at < rest.end && Is(at, "=")) ++at;
    HostValue list;
    if (at < rest.end && Is(at, "{")) list = Value({at, rest.end});
    if (open_extent && list.Is(Kind::kList))
      count = HostValue::Number(std::to_string(list.items.size()));
    // The elements of an array of pointers are allocated one by one.
    const bool pointers = std::exchange(variable.pointer, true);
    variable.array = !pointers;
    if (list.Is(Kind::kList)) {
      variable.value = std::move(list);
    } else if (!pointers) {
      variable.value = ArrayOf(state_, frame_, variable.type, count);
    }
  }

  /// std::vector<float> h(n), d = h, e(h.begin(), h.end());
  void Container(HostVariable& variable, TokenRange inside) {
    const auto pieces = SplitArguments(syntax_, inside, true);
    if (pieces.empty()) return;
    const HostValue first = Value(pieces[0]);
    HostValue value = HostValue::Unknown();
    if (first.Is(Kind::kNumber) || first.Is(Kind::kUnknown))
      value = ArrayOf(state_, frame_, variable.type, first);
    else if (first.Is(Kind::kBuffer) && first.buffer->elements.Is(Kind::kNumber))
      value = ArrayOf(state_, frame_, variable.type, first.buffer->elements);
    if (first.Is(Kind::kList))
      value = ArrayOf(state_, frame_, variable.type,
                      HostValue::Number(std::to_string(first.items.size())));
    Store(state_, variable, std::move(value), named_);
  }

  /// The elements of a list become variables, so that they can be changed.
  void Elements(const HostVariable& variable) {
    if (!variable.value.Is(Kind::kList)) return;
    for (size_t i = 0; i < std::min(variable.value.items.size(), kMostElements); ++i) {
      const auto element = std::make_shared<HostVariable>();
      element->name = variable.name + "_" + std::to_string(i);
      element->type = variable.type;
      element->value = variable.value.items[i];
      frame_.variables[variable.name + "[" + std::to_string(i) + "]"] = element;
    }
  }

  HostState& state_;
  const CudaSyntax& syntax_;
  HostFrame& frame_;
  std::string type_, element_;
  bool named_;
};

struct Parameter {
  DeclarationHead head;
  TokenRange declared;  ///< name with * and &
  TokenRange fallback;  ///< the default argument; may be empty
  std::string name;
  bool pointer = false;
  bool reference = false;  ///< to something that the function may change
};

std::optional<Parameter> ParameterIn(const CudaSyntax& syntax, TokenRange piece) {
  Parameter parameter;
  size_t end = piece.begin;
  while (end < piece.end && !syntax.token(end).Is("=")) ++end;
  if (end < piece.end) parameter.fallback = {end + 1, piece.end};
  const auto head = DeclarationAt(syntax, {piece.begin, end});
  if (!head) return std::nullopt;
  parameter.head = *head;
  parameter.declared = {head->declarators, end};
  bool constant = false;
  for (size_t i = piece.begin; i < end; ++i) {
    const Token& token = syntax.token(i);
    constant |= token.Is("const");
    parameter.pointer |= token.Is("*") || token.Is("[");
    parameter.reference |= token.Is("&") || token.Is("&&");
    if (token.kind == Token::Kind::kWord && i >= head->declarators) parameter.name = token.text;
  }
  parameter.reference &= !constant;
  return parameter;
}

/// The type parameter that a parameter's type names gets the type of the argument.
void Deduce(const HostState& state, const HostFunction& function, const std::string& type,
            const HostValue& value, const HostCell& cell, HostFrame& frame) {
  for (const TemplateParameter& one : function.templates) {
    const bool is_type = one.type == "typename" || one.type == "class";
    if (!is_type || one.name != type || frame.types.contains(one.name)) continue;
    std::string given = value.Is(Kind::kBuffer) ? value.buffer->type : value.type;
    if (given.empty() && cell) given = ResolvedType(state, {}, cell->type);
    if (!given.empty() && given != "auto") frame.types[one.name] = given;
  }
}

void BindTemplates(HostState& state, HostFrame& frame, const HostFunction& function,
                   const std::vector<Tokens>& given, const HostFrame* caller) {
  for (size_t i = 0; i < function.templates.size(); ++i) {
    const TemplateParameter& parameter = function.templates[i];
    const bool is_type = parameter.type == "typename" || parameter.type == "class";
    if (i >= given.size()) continue;
    std::string text;
    for (const Token& token : given[i]) text += (text.empty() ? "" : " ") + std::string(token.text);
    HostFrame scope = caller ? *caller : HostFrame{};
    if (is_type) {
      frame.types[parameter.name] = ResolvedType(state, scope, text);
      continue;
    }
    const auto variable = std::make_shared<HostVariable>();
    variable->name = parameter.name;
    variable->type = parameter.type;
    Store(state, *variable, Evaluate(state, scope, given[i]), /*named=*/parameter.type != "bool");
    frame.variables[parameter.name] = variable;
  }
}

/// What neither the call nor its arguments decide has its default.
void BindDefaults(HostState& state, HostFrame& frame, const HostFunction& function) {
  for (const TemplateParameter& one : function.templates) {
    const bool is_type = one.type == "typename" || one.type == "class";
    if (is_type && !one.fallback.empty()) frame.types.try_emplace(one.name, one.fallback);
    if (is_type || one.fallback.empty() || frame.variables.contains(one.name)) continue;
    const auto variable = std::make_shared<HostVariable>();
    variable->name = one.name;
    variable->type = one.type;
    state.texts.push_back(one.fallback);
    Store(state, *variable, Evaluate(state, frame, Lex(state.texts.back()).tokens), true);
    frame.variables[one.name] = variable;
  }
}

void BindParameter(HostState& state, HostFrame& frame, const HostFunction& function,
                   const Parameter& parameter, const HostCall* call, size_t index) {
  const bool given = call != nullptr && index < call->arguments.size();
  std::string type(state.syntax.Text(parameter.head.type));
  if (given) Deduce(state, function, type, call->arguments[index], call->cells[index], frame);
  if (const auto bound = frame.types.find(type); bound != frame.types.end()) type = bound->second;
  if (given && parameter.reference && call->cells[index]) {
    frame.variables[parameter.name] = call->cells[index];
    return;
  }
  const auto variable = std::make_shared<HostVariable>();
  variable->name = parameter.name;
  variable->type = type;
  variable->pointer = parameter.pointer;
  HostValue value = HostValue::Unknown(parameter.pointer ? "" : parameter.name);
  if (given)
    value = call->arguments[index];
  else if (!parameter.fallback.empty())
    value = Evaluate(state, frame, parameter.fallback);
  if (type == "dim3" && value.Is(Kind::kNumber)) value = HostValue::Extents({value});
  Store(state, *variable, std::move(value), /*named=*/true);
  frame.variables[parameter.name] = variable;
}

}  // namespace

std::optional<DeclarationHead> DeclarationAt(const CudaSyntax& syntax, TokenRange statement) {
  const auto word = [&](size_t i) {
    return i < statement.end && syntax.token(i).kind == Token::Kind::kWord;
  };
  size_t at = statement.begin;
  while (word(at) && IsOneOf(syntax.token(at).text, kQualifiers)) ++at;
  if (!word(at) || IsOneOf(syntax.token(at).text, kStatements)) return std::nullopt;
  DeclarationHead head{{at, at}, at};
  for (;;) {
    at = BehindWord(syntax, at, statement.end);
    if (syntax.token(at).Is("::") && word(at + 1)) {
      ++at;
      continue;
    }
    size_t next = at;  // behind * and &
    while (next < statement.end &&
           (syntax.token(next).Is("*") || syntax.token(next).Is("&") ||
            syntax.token(next).Is("&&") || IsOneOf(syntax.token(next).text, kQualifiers)))
      ++next;
    if (!word(next)) return std::nullopt;
    head = {{head.type.begin, at}, at};
    const Token& behind = syntax.token(next + 1);
    const bool ends = next + 1 >= statement.end || behind.Is("=") || behind.Is("(") ||
                      behind.Is("{") || behind.Is("[") || behind.Is(",") || behind.Is(":");
    if (ends) return head;
    if (next != at) return std::nullopt;
  }
}

void Declare(HostState& state, HostFrame& frame, const DeclarationHead& head, size_t end,
             bool named) {
  Declarator declarator(state, frame, head.type, named);
  for (const TokenRange& piece : SplitArguments(state.syntax, {head.declarators, end}, true))
    declarator.Run(piece);
}

void BindParameters(HostState& state, HostFrame& frame, const HostCall* call,
                    const HostFrame* caller) {
  const HostFunction& function = state.syntax.functions[frame.function];
  if (call != nullptr) BindTemplates(state, frame, function, call->template_args, caller);
  size_t index = 0;
  for (const TokenRange& piece : SplitArguments(state.syntax, function.parameters, true)) {
    if (const auto parameter = ParameterIn(state.syntax, piece))
      BindParameter(state, frame, function, *parameter, call, index);
    ++index;
  }
  BindDefaults(state, frame, function);
}

}  // namespace atunner
