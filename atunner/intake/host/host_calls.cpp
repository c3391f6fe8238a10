#include "atunner/intake/host/host_calls.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "atunner/intake/host/host_operators.h"
#include "atunner/intake/host/host_statements.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

using Kind = HostValue::Kind;
using Known = HostValue (*)(HostState&, const HostCall&);

HostValue Success() { return HostValue::Number("0"); }

// --- memory ---

HostValue NewBuffer(const HostValue& bytes) {
  const auto buffer = std::make_shared<HostBuffer>();
  buffer->bytes = bytes;
  return HostValue::Of(buffer);
}

void Give(HostState& state, const HostValue& address, HostValue value) {
  if (!address.Is(Kind::kAddress)) return;
  HostVariable& variable = *address.target;
  variable.pointer = true;
  value.buffer->type = variable.type;
  Store(state, variable, std::move(value), /*named=*/false);
}

/// cudaMalloc(&d, bytes) and its relatives.
HostValue Allocate(HostState& state, const HostCall& call) {
  Give(state, call.arguments[0], NewBuffer(call.arguments[1]));
  return Success();
}

/// cudaMallocPitch(&d, &pitch, bytes of a row, rows): rows are rounded up to 512 bytes.
HostValue AllocatePitched(HostState& state, const HostCall& call) {
  if (call.arguments.size() < 4) return Success();
  const HostValue& row = call.arguments[2];
  HostValue pitch = row;
  if (row.Is(Kind::kNumber)) pitch = HostValue::Number("((" + row.text + " + 511) // 512 * 512)");
  Give(state, call.arguments[0], NewBuffer(Combined(state, "*", pitch, call.arguments[3])));
  if (call.arguments[1].Is(Kind::kAddress))
    Store(state, *call.arguments[1].target, pitch, /*named=*/false);
  return Success();
}

HostValue MallocOf(HostState& /*state*/, const HostCall& call) {
  return NewBuffer(call.arguments[0]);
}

HostValue CallocOf(HostState& state, const HostCall& call) {
  return NewBuffer(Combined(state, "*", HostValue::Number(Bracketed(call.arguments[0])),
                            HostValue::Number(Bracketed(call.arguments[1]))));
}

/// cudaMemset(d, 0, bytes)
HostValue Fill(HostState& state, const HostCall& call) {
  const auto now = NumberNow(call.arguments[1], state.leaves);
  if (call.arguments[0].Is(Kind::kBuffer))
    call.arguments[0].buffer->zeroed = now && ToDouble(*now) == 0;
  return Success();
}

/// cudaMemcpy(d, h, bytes, kind): what is copied is not known to be zero.
HostValue CopyTo(HostState& /*state*/, const HostCall& call) {
  if (call.arguments[0].Is(Kind::kBuffer)) call.arguments[0].buffer->zeroed = false;
  return Success();
}

/// cudaMemcpyToSymbol(symbol, h, bytes)
HostValue CopyToSymbol(HostState& state, const HostCall& call) {
  std::string name;
  for (const Token& token : call.tokens[0]) {
    if (token.kind == Token::Kind::kWord) name = token.text;
  }
  const HostValue& source = call.arguments[1];
  state.symbols.insert_or_assign(name, source.Is(Kind::kAddress) ? source.target->value : source);
  return Success();
}

// --- numbers ---

HostValue CallOf(const char* name, const HostCall& call, bool real) {
  std::string text;
  HostValue missing;
  bool known = true;
  for (const HostValue& argument : call.arguments) {
    if (!argument.Is(Kind::kNumber)) missing.missing.Add(argument.missing);
    known &= argument.Is(Kind::kNumber);
    real |= argument.real;
    text += (text.empty() ? "" : ", ") + argument.text;
  }
  return known ? HostValue::Number(std::string(name) + "(" + text + ")", real) : missing;
}

HostValue PowerOf(const std::string& base, const HostValue& exponent, const HostValue& missing) {
  if (!exponent.Is(Kind::kNumber)) return exponent;
  if (base.empty()) return missing;
  return HostValue::Number("(" + base + ") ** (" + exponent.text + ")", /*real=*/true,
                           /*plain=*/false);
}

HostValue Least(HostState&, const HostCall& call) { return CallOf("min", call, false); }
HostValue Most(HostState&, const HostCall& call) { return CallOf("max", call, false); }
HostValue Magnitude(HostState&, const HostCall& call) { return CallOf("abs", call, false); }
HostValue Ceiling(HostState&, const HostCall& call) { return CallOf("ceil", call, true); }
HostValue Floor(HostState&, const HostCall& call) { return CallOf("floor", call, true); }
HostValue Log2(HostState&, const HostCall& call) { return CallOf("log2", call, true); }
HostValue Root(HostState&, const HostCall& call) {
  return PowerOf(call.arguments[0].text, HostValue::Number("0.5"), call.arguments[0]);
}
HostValue InverseRoot(HostState&, const HostCall& call) {
  return PowerOf(call.arguments[0].text, HostValue::Number("-0.5"), call.arguments[0]);
}
HostValue Exponential(HostState&, const HostCall& call) {
  return PowerOf("2.718281828459045", call.arguments[0], {});
}
HostValue Power(HostState&, const HostCall& call) {
  return PowerOf(call.arguments[0].text, call.arguments[1], call.arguments[0]);
}

// --- others ---

HostValue First(HostState&, const HostCall& call) { return call.arguments[0]; }

HostValue Exit(HostState& state, const HostCall&) {
  state.exited = true;
  return Success();
}

HostValue Exchange(HostState&, const HostCall& call) {
  if (call.cells[0] && call.cells[1]) std::swap(call.cells[0]->value, call.cells[1]->value);
  return Success();
}

struct Entry {
  size_t arguments;  ///< at least so many
  Known known;
};

const std::map<std::string_view, Entry>& Table() {
  static const std::map<std::string_view, Entry> kTable = {
      {"cudaMalloc", {2, Allocate}},
      {"cudaMallocAsync", {2, Allocate}},
      {"cudaMallocManaged", {2, Allocate}},
      {"cudaMallocHost", {2, Allocate}},
      {"cudaHostAlloc", {2, Allocate}},
      {"cudaMallocPitch", {4, AllocatePitched}},
      {"malloc", {1, MallocOf}},
      {"calloc", {2, CallocOf}},
      {"cudaMemset", {3, Fill}},
      {"cudaMemsetAsync", {3, Fill}},
      {"cudaMemcpy", {3, CopyTo}},
      {"cudaMemcpyAsync", {3, CopyTo}},
      {"cudaMemcpyToSymbol", {2, CopyToSymbol}},
      {"cudaMemcpyToSymbolAsync", {2, CopyToSymbol}},
      {"min", {2, Least}},
      {"fmin", {2, Least}},
      {"fminf", {2, Least}},
      {"max", {2, Most}},
      {"fmax", {2, Most}},
      {"fmaxf", {2, Most}},
      {"abs", {1, Magnitude}},
      {"fabs", {1, Magnitude}},
      {"fabsf", {1, Magnitude}},
      {"ceil", {1, Ceiling}},
      {"ceilf", {1, Ceiling}},
      {"floor", {1, Floor}},
      {"floorf", {1, Floor}},
      {"log2", {1, Log2}},
      {"log2f", {1, Log2}},
      {"sqrt", {1, Root}},
      {"sqrtf", {1, Root}},
      {"rsqrt", {1, InverseRoot}},
      {"rsqrtf", {1, InverseRoot}},
      {"exp", {1, Exponential}},
      {"expf", {1, Exponential}},
      {"pow", {2, Power}},
      {"powf", {2, Power}},
      {"move", {1, First}},
      {"forward", {1, First}},
      {"ref", {1, First}},
      {"raw_pointer_cast", {1, First}},
      {"exit", {0, Exit}},
      {"abort", {0, Exit}},
      {"_Exit", {0, Exit}},
      {"swap", {2, Exchange}},
  };
  return kTable;
}

/// ceil_div, CEIL_DIV, DivUp, …: kept as one operation, so that block sizes are found in it.
bool IsCeilDiv(std::string name) {
  std::erase(name, '_');
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static constexpr std::string_view kNames[] = {"ceildiv", "cdiv",       "divup",      "idivup",
                                                "divceil", "divroundup", "ceildivide", "updiv"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

bool IsOfRuntime(std::string_view name) {
  return name.starts_with("cuda") && name.size() > 4 &&
         std::isupper(static_cast<unsigned char>(name[4]));
}

struct Macro {
  std::vector<std::string_view> parameters;
  std::string text;
};

/// The macro with parameters of that name, e.g. #define BLOCKS(n) (((n) + 255) / 256).
std::optional<Macro> FindMacro(const CudaSyntax& syntax, const std::string& name) {
  for (const Token& directive : syntax.lexed.tokens) {
    if (directive.kind != Token::Kind::kDirective) continue;
    const std::string_view text = directive.text;
    const size_t define = text.find("define"), at = text.find(name + "(");
    if (define == std::string_view::npos || at == std::string_view::npos || at < define + 7 ||
        text.find_first_not_of(" \t", define + 6) != at)
      continue;
    const size_t open = at + name.size(), close = text.find(')', open);
    if (close == std::string_view::npos) continue;
    Macro macro{{}, std::string(text.substr(close + 1))};
    std::erase(macro.text, '\\');
    for (const Token& token : Lex(text.substr(open + 1, close - open - 1)).tokens) {
      if (token.kind == Token::Kind::kWord) macro.parameters.push_back(token.text);
    }
    return macro;
  }
  return std::nullopt;
}

/// The value of a macro that is an expression; unknown for others.
HostValue Expanded(HostState& state, HostFrame& frame, Macro macro, const HostCall& call) {
  constexpr int kMostCalls = 16;
  if (macro.parameters.size() != call.tokens.size() || state.calls > kMostCalls) return {};
  const auto bracket = [](std::string_view text) {
    return Token{Token::Kind::kSymbol, text, 0, 0};
  };
  state.texts.push_back(std::move(macro.text));
  Tokens expression;
  for (const Token& token : Lex(state.texts.back()).tokens) {
    const auto parameter = std::ranges::find(macro.parameters, token.text);
    if (token.Is(";") || token.Is("{")) return {};  // a statement
    if (token.kind != Token::Kind::kWord || parameter == macro.parameters.end()) {
      expression.push_back(token);
      continue;
    }
    const Tokens& argument = call.tokens[static_cast<size_t>(parameter - macro.parameters.begin())];
    const bool wrapped = argument.size() > 1;
    if (wrapped) expression.push_back(bracket("("));
    expression.insert(expression.end(), argument.begin(), argument.end());
    if (wrapped) expression.push_back(bracket(")"));
  }
  ++state.calls;
  HostValue value = Evaluate(state, frame, expression);
  --state.calls;
  return value;
}

/// Forgets the variables whose addresses an unknown function receives.
void ForgetTargets(HostState& state, const HostCall& call) {
  for (const HostValue& argument : call.arguments) {
    if (!argument.Is(Kind::kAddress) || argument.target->value.Is(Kind::kBuffer)) continue;
    Store(state, *argument.target, HostValue::Unknown(), /*named=*/false);
  }
}

}  // namespace

HostValue CallHost(HostState& state, HostFrame& frame, const HostCall& call) {
  if (IsCeilDiv(call.name) && call.arguments.size() == 2) {
    HostValue value = CallOf("ceil_div", call, false);
    if (value.Is(Kind::kNumber)) return value;
  }
  const auto known = Table().find(call.name);
  const bool own = IsFunction(state.syntax, call.name);
  if (known != Table().end() && call.arguments.size() >= known->second.arguments && !own)
    return known->second.known(state, call);
  if (const auto macro = FindMacro(state.syntax, call.name)) {
    HostValue value = Expanded(state, frame, *macro, call);
    // CHECK(cudaMalloc(…)): the argument has been evaluated, whatever else the macro does.
    return value.Is(Kind::kUnknown) && call.arguments.size() == 1 &&
                   !call.arguments[0].Is(Kind::kUnknown) && macro->text.contains('{')
               ? call.arguments[0]
               : value;
  }
  if (auto result = CallFunction(state, frame, call)) return *std::move(result);
  ForgetTargets(state, call);
  if (IsOfRuntime(call.name)) return Success();
  return HostValue::Unknown();
}

HostValue CallMember(HostState& state, const HostValue& object, const HostCell& variable,
                     const std::string& member, std::span<const HostValue> arguments) {
  const bool sized = member == "resize" || member == "assign";
  if (sized && variable && !arguments.empty() && variable->pointer && !variable->type.empty()) {
    Store(state, *variable, ArrayOf(state, {}, variable->type, arguments[0]), /*named=*/false);
    return {};
  }
  if (!object.Is(Kind::kBuffer)) return HostValue::Unknown();
  if (member == "data" || member == "get" || member == "begin") return object;
  if (member != "size" && member != "length" && member != "numel") return HostValue::Unknown();
  HostValue count = object.buffer->elements;
  if (count.Is(Kind::kNumber)) count.text = Bracketed(count), count.plain = true;
  return count;
}

}  // namespace atunner
