#include "atunner/intake/host/host_statements.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "atunner/intake/host/host_declarations.h"

namespace atunner {
namespace {

using Kind = HostValue::Kind;

constexpr int kMostRounds = 64;  // of a loop
constexpr int kMostCalls = 8;    // calls in each other

/// How a statement ends.
enum class Flow : uint8_t { kNext, kBreak, kContinue, kReturn };

class Walker {
 public:
  Walker(HostState& state, HostFrame& frame)
      : state_(state), syntax_(state.syntax), frame_(frame) {}

  Flow Statements(TokenRange range) {
    for (size_t i = range.begin; i < range.end;) {
      if (Done()) return Flow::kReturn;
      const size_t end = StatementEnd(i, range.end);
      if (const Flow flow = Statement({i, end}); flow != Flow::kNext) return flow;
      i = end;
    }
    return Flow::kNext;
  }

 private:
  bool Is(size_t i, std::string_view text) const { return syntax_.token(i).Is(text); }
  bool Opens(size_t i) const { return Is(i, "(") || Is(i, "{") || Is(i, "["); }
  bool Done() const { return state_.reached != nullptr || state_.exited || state_.steps_left <= 0; }

  /// The token after the statement that begins at `i`.
  size_t StatementEnd(size_t i, size_t end) const {
    while (i < end && (Is(i, "if") || Is(i, "for") || Is(i, "while") || Is(i, "switch"))) {
      const bool branches = Is(i, "if");
      i = std::min(MatchingClose(syntax_, Is(i + 1, "constexpr") ? i + 2 : i + 1) + 1, end);
      if (!branches) continue;
      i = StatementEnd(i, end);
      if (!Is(i, "else")) return i;
      ++i;
    }
    if (Is(i, "do") || Is(i, "try")) {
      const size_t body = StatementEnd(i + 1, end);
      return Is(i, "try") || !Is(body, "while") ? body : StatementEndBehind(body, end);
    }
    if (Is(i, "{")) return std::min(MatchingClose(syntax_, i) + 1, end);
    if (syntax_.token(i).kind == Token::Kind::kDirective) return std::min(i + 1, end);
    return StatementEndBehind(i, end);
  }
  size_t StatementEndBehind(size_t i, size_t end) const {
    while (i < end && !Is(i, ";")) i = Opens(i) ? MatchingClose(syntax_, i) + 1 : i + 1;
    return std::min(i + 1, end);
  }

  Flow Statement(TokenRange range) {
    const Nested nested(state_);
    --state_.steps_left;
    if (state_.TooDeep()) return Flow::kReturn;
    const size_t i = range.begin;
    if (syntax_.token(i).kind == Token::Kind::kDirective || Is(i, ";")) return Flow::kNext;
    if (Is(i, "{")) return Block({i + 1, range.end - 1});
    if (Is(i, "if")) return If(range);
    if (Is(i, "for")) return For(range);
    if (Is(i, "while")) return While(range);
    if (Is(i, "do")) return Do(range);
    if (Is(i, "switch")) return Switch(range);
    if (Is(i, "try")) return Statements({i + 1, range.end});
    if (Is(i, "catch")) return Flow::kNext;
    if (Is(i, "break")) return Flow::kBreak;
    if (Is(i, "continue")) return Flow::kContinue;
    if (Is(i, "case") || Is(i, "default")) return Labelled(range);
    if (Is(i, "return")) {
      frame_.result = Simple({i + 1, range.end - 1});
      return Flow::kReturn;
    }
    if (Is(i, "throw")) return Flow::kReturn;
    if (Is(i, "using") && Is(i + 2, "=")) {
      const std::string text(syntax_.Text({i + 3, range.end - 1}));
      frame_.types[std::string(syntax_.token(i + 1).text)] = ResolvedType(state_, frame_, text);
      return Flow::kNext;
    }
    const bool closed = Is(range.end - 1, ";");
    Simple({i, closed ? range.end - 1 : range.end});
    return Done() ? Flow::kReturn : Flow::kNext;
  }

  /// `case 4: statement`
  Flow Labelled(TokenRange range) {
    size_t i = range.begin;
    while (i < range.end && !Is(i, ":")) ++i;
    return Statements({i + 1, range.end});
  }

  /// A declaration or an expression; its value.
  HostValue Simple(TokenRange range) {
    if (range.empty()) return {};
    if (const KernelLaunch* launch = LaunchIn(range)) {
      if (Reach(*launch, range)) return {};
    }
    if (const auto head = DeclarationAt(syntax_, range)) {
      Declare(state_, frame_, *head, range.end, /*named=*/true);
      return {};
    }
    if (syntax_.token(range.begin).Is("delete")) return {};
    return Evaluate(state_, frame_, range);
  }

  const KernelLaunch* LaunchIn(TokenRange range) const {
    for (const KernelLaunch* launch : state_.launches) {
      if (range.begin <= launch->token && launch->token < range.end) return launch;
    }
    return nullptr;
  }

  /// Ends the walk at a launch of the statement; false if it is in a block of a lambda that is not
  /// reached.
  bool Reach(const KernelLaunch& launch, TokenRange statement) {
    for (size_t i = statement.begin; i < launch.token; ++i) {
      if (!Is(i, "{")) continue;
      const size_t close = MatchingClose(syntax_, i);
      if (close < launch.token) {
        i = close;
        continue;
      }
      Statements({i + 1, close});
      return state_.reached != nullptr;
    }
    state_.reached = &launch;
    state_.at_launch = frame_;
    return true;
  }

  /// Variables that are declared in a block end with it; elements and members of others stay.
  Flow Block(TokenRange range) {
    const auto before = frame_.variables;
    const Flow flow = Statements(range);
    EndScope(before);
    return flow;
  }

  void EndScope(const std::map<std::string, HostCell, std::less<>>& before) {
    if (state_.reached != nullptr) return;
    const auto after = std::exchange(frame_.variables, before);
    for (const auto& [path, cell] : after) {
      const size_t mark = path.find_first_of(".[");
      if (mark == std::string::npos) continue;
      const auto base = before.find(path.substr(0, mark));
      const auto now = after.find(path.substr(0, mark));
      if (base != before.end() && now != after.end() && now->second == base->second)
        frame_.variables[path] = cell;
    }
  }

  // --- conditions ---

  Flow If(TokenRange range) {
    const size_t open = Is(range.begin + 1, "constexpr") ? range.begin + 2 : range.begin + 1;
    const size_t close = MatchingClose(syntax_, open);
    const TokenRange then{close + 1, StatementEnd(close + 1, range.end)};
    const TokenRange other = Is(then.end, "else") && then.end < range.end
                                 ? TokenRange{then.end + 1, range.end}
                                 : TokenRange{};
    const HostValue condition = Simple({open + 1, close});
    const auto truth = TruthNow(condition, state_.leaves);
    if (Done()) return Flow::kReturn;
    if (truth) return *truth ? Statements(then) : Statements(other);
    return Both(condition, then, other);
  }

  using Values = std::map<HostVariable*, std::pair<HostCell, HostValue>>;
  Values Snapshot() const {
    Values values;
    for (const auto* variables : {&frame_.variables, &state_.variables}) {
      for (const auto& [path, cell] : *variables) values[cell.get()] = {cell, cell->value};
    }
    return values;
  }
  static void Restore(const Values& values) {
    for (const auto& [variable, kept] : values) variable->value = kept.second;
  }

  /// True for values that are surely the same.
  static bool Same(const HostValue& a, const HostValue& b) {
    return a.kind == b.kind && a.text == b.text && a.buffer == b.buffer &&
           a.items.size() == b.items.size() &&
           std::ranges::equal(a.items, b.items, [](const HostValue& one, const HostValue& other) {
             return Same(one, other);
           });
  }

  /// Walks a branch from the values before; true if it comes to its end.
  bool Branch(TokenRange range, const Values& before) {
    Restore(before);
    const Flow flow = Statements(range);
    const bool exited = std::exchange(state_.exited, false);
    return flow != Flow::kReturn && !exited;
  }

  /// Both branches of a condition whose value is unknown.
  Flow Both(const HostValue& condition, TokenRange then, TokenRange other) {
    const Values before = Snapshot();
    const bool first = Branch(then, before);
    if (Done()) return Flow::kReturn;
    const Values after_first = Snapshot();
    const bool second = Branch(other, before);
    if (Done()) return Flow::kReturn;
    if (!first || !second) {
      if (first) Restore(after_first);
      return !first && !second ? Flow::kReturn : Flow::kNext;
    }
    for (const auto& [variable, kept] : after_first) Merge(*variable, kept.second, condition);
    return Flow::kNext;
  }

  /// The value of a variable after one of two branches. If they differ, it is what the condition
  /// lacks that is missing.
  static void Merge(HostVariable& variable, const HostValue& one, const HostValue& condition) {
    if (Same(variable.value, one)) return;
    const bool first = one.Is(Kind::kBuffer), second = variable.value.Is(Kind::kBuffer);
    if (first && !second) variable.value = one;
    if (first || second) return;
    const bool number = variable.value.Is(Kind::kNumber) || one.Is(Kind::kNumber);
    variable.value = HostValue::Unknown(number ? variable.name : "");
    const Missing& lacks = condition.missing;
    if (!lacks.nameless && !lacks.names.empty()) variable.value.missing = lacks;
  }

  Flow Switch(TokenRange range) {
    const size_t close = MatchingClose(syntax_, range.begin + 1);
    const HostValue value = Simple({range.begin + 2, close});
    const auto now = NumberNow(value, state_.leaves);
    if (!Is(close + 1, "{")) return Flow::kNext;
    const TokenRange body{close + 2, range.end - 1};
    if (now) {
      const size_t from = LabelOf(body, ToDouble(*now));
      const Flow flow = Block({from, body.end});
      return flow == Flow::kBreak ? Flow::kNext : flow;
    }
    const Values before = Snapshot();
    for (const size_t label : Labels(body)) {
      Branch({label, body.end}, before);
      if (Done()) return Flow::kReturn;
    }
    Restore(before);
    Forget(body);
    return Flow::kNext;
  }

  /// The labels of a switch itself, not those of one inside.
  std::vector<size_t> Labels(TokenRange body) const {
    std::vector<size_t> labels;
    for (size_t i = body.begin; i < body.end; ++i) {
      if (Is(i, "case") || Is(i, "default")) labels.push_back(i);
      if (Opens(i)) i = MatchingClose(syntax_, i);
    }
    return labels;
  }

  /// The label with that value, else default, else the end.
  size_t LabelOf(TokenRange body, double wanted) {
    size_t found = body.end;
    for (const size_t label : Labels(body)) {
      if (Is(label, "default")) found = label;
      if (!Is(label, "case")) continue;
      size_t colon = label;
      while (colon < body.end && !Is(colon, ":")) ++colon;
      const auto now = NumberNow(Evaluate(state_, frame_, TokenRange{label + 1, colon}),
                                 state_.leaves);
      if (now && ToDouble(*now) == wanted) return label;
    }
    return found;
  }

  // --- loops ---

  Flow For(TokenRange range) {
    const size_t close = MatchingClose(syntax_, range.begin + 1);
    const TokenRange body{close + 1, range.end};
    std::vector<size_t> ends;  // the semicolons of the head
    for (size_t i = range.begin + 2; i < close; ++i) {
      if (Is(i, ";")) ends.push_back(i);
      if (Opens(i)) i = MatchingClose(syntax_, i);
    }
    const auto before = frame_.variables;
    Flow flow = Flow::kNext;
    if (ends.size() == 2) {
      Head({range.begin + 2, ends[0]});
      if (IsRelevant(body) && Multiplies({ends[1] + 1, close})) Forget({ends[1] + 1, close});
      flow = Loop({ends[0] + 1, ends[1]}, {ends[1] + 1, close}, body);
    } else {
      flow = ForEach({range.begin + 2, close}, body);
    }
    EndScope(before);
    return flow;
  }

  /// `int i = 0` of a loop, whose value is no size.
  void Head(TokenRange range) {
    ++state_.loops;
    if (const auto head = DeclarationAt(syntax_, range))
      Declare(state_, frame_, *head, range.end, /*named=*/false);
    else if (!range.empty())
      Evaluate(state_, frame_, range);
    --state_.loops;
  }

  /// True for the step of a loop whose rounds differ in kind, such as `k *= 2` of a sort's phases:
  /// the first of them does not stand for the others.
  bool Multiplies(TokenRange step) const {
    for (size_t i = step.begin; i < step.end; ++i) {
      if (Is(i, "*=") || Is(i, "/=") || Is(i, "*") || Is(i, "/")) return true;
      if ((Is(i, "<") && Is(i + 1, "<=")) || (Is(i, ">") && Is(i + 1, ">="))) return true;
    }
    return false;
  }

  /// for (int n : {64, 128}), with an unknown value if the list is unknown.
  Flow ForEach(TokenRange head, TokenRange body) {
    size_t colon = head.begin;
    while (colon < head.end && !Is(colon, ":")) ++colon;
    const HostValue list = Evaluate(state_, frame_, TokenRange{colon + 1, head.end});
    const auto variable = std::make_shared<HostVariable>();
    variable->name = syntax_.token(colon - 1).text;
    std::vector<HostValue> values = list.items;
    if (values.empty()) values.push_back(HostValue::Unknown(variable->name));
    if (values.size() > kMostRounds || !IsRelevant(body)) values.resize(1);
    frame_.variables[variable->name] = variable;
    ++state_.loops;
    Flow flow = Flow::kNext;
    for (const HostValue& value : values) {
      variable->value = value;
      flow = Statements(body);
      if (flow == Flow::kBreak || flow == Flow::kReturn) break;
    }
    --state_.loops;
    return flow == Flow::kReturn ? flow : Flow::kNext;
  }

  Flow While(TokenRange range) {
    const size_t close = MatchingClose(syntax_, range.begin + 1);
    return Loop({range.begin + 2, close}, {}, {close + 1, range.end});
  }

  Flow Do(TokenRange range) {
    const size_t end = StatementEnd(range.begin + 1, range.end);
    const TokenRange body{range.begin + 1, end};
    ++state_.loops;
    const Flow flow = Statements(body);
    --state_.loops;
    if (flow == Flow::kReturn || !Is(end, "while")) return flow;
    if (flow == Flow::kBreak) return Flow::kNext;
    return Loop({end + 2, MatchingClose(syntax_, end + 1)}, {}, body);
  }

  Flow Loop(TokenRange condition, TokenRange step, TokenRange body) {
    // A loop that only computes on the host is not walked.
    if (!IsRelevant(body) && !IsShort(body)) {
      Forget(body);
      Forget(step);
      return Flow::kNext;
    }
    ++state_.loops;
    const Flow flow = Rounds(condition, step, body);
    --state_.loops;
    return flow;
  }

  Flow Rounds(TokenRange condition, TokenRange step, TokenRange body) {
    for (int round = 0; !Done(); ++round) {
      const auto truth = condition.empty()
                             ? std::optional(true)
                             : TruthNow(Evaluate(state_, frame_, condition), state_.leaves);
      if (truth == false) return Flow::kNext;
      const bool last = !truth || round == kMostRounds;
      if (round < kMostRounds) {
        const Flow flow = Statements(body);
        if (Done()) return Flow::kReturn;
        if (flow == Flow::kBreak) return Flow::kNext;
        // A return under an unknown condition of the loop may not be reached.
        if (flow == Flow::kReturn) return truth ? flow : Flow::kNext;
        if (!step.empty()) Evaluate(state_, frame_, step);
      }
      if (!last) continue;
      Forget(body);
      Forget(step);
      return Flow::kNext;
    }
    return Flow::kReturn;
  }

  /// True if a range may launch, allocate or fill device variables.
  bool IsRelevant(TokenRange range) const {
    return LaunchIn(range) != nullptr || IsRelevantText(syntax_, range, state_.relevant);
  }
  /// True for a loop such as `while (p < n) p *= 2;`.
  bool IsShort(TokenRange range) const {
    constexpr size_t kMostTokens = 32;
    if (range.end > range.begin + kMostTokens) return false;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (Is(i, "for") || Is(i, "while") || Is(i, "do") || Is(i, "[") || Is(i, "(")) return false;
    }
    return true;
  }

  /// Makes the variables unknown that a range changes.
  void Forget(TokenRange range) {
    for (size_t i = range.begin; i < range.end; ++i) {
      if (syntax_.token(i).kind != Token::Kind::kWord) continue;
      const bool member = i > 0 && (Is(i - 1, ".") || Is(i - 1, "->"));
      const std::string_view next = syntax_.token(i + 1).text;
      const bool steps = next == "++" || next == "--" || Is(i - 1, "++") || Is(i - 1, "--");
      const bool shifts = (next == "<" || next == ">") && Is(i + 2, std::string(next) + "=");
      const bool changes = steps || shifts || next == "=" ||
                           (next.size() == 2 && next[1] == '=' &&
                            std::string_view("+-*/%&|^").contains(next[0]));
      if (!changes || member) continue;
      const HostCell cell = FindCell(state_, frame_, syntax_.token(i).text);
      if (cell && cell->value.Is(Kind::kNumber)) cell->value = HostValue::Unknown(cell->name);
    }
  }

 public:
  static bool IsRelevantText(const CudaSyntax& syntax, TokenRange range,
                             const RelevantNames& relevant) {
    for (size_t i = range.begin; i < range.end; ++i) {
      const std::string_view word = syntax.token(i).text;
      if (syntax.token(i).kind != Token::Kind::kWord) continue;
      if (word.starts_with("cudaMalloc") || word.starts_with("cudaMemset") ||
          word.starts_with("cudaMemcpyToSymbol") || word == "cudaHostAlloc" || word == "malloc")
        return true;
      if (relevant.contains(word)) return true;
    }
    return false;
  }

 private:
  HostState& state_;
  const CudaSyntax& syntax_;
  HostFrame& frame_;
};

/// True if a call of so many arguments may mean the function.
bool Accepts(const CudaSyntax& syntax, const HostFunction& function, size_t arguments) {
  const auto parameters = SplitArguments(syntax, function.parameters, true);
  if (parameters.size() == 1 && syntax.Text(parameters[0]) == "void") return arguments == 0;
  if (parameters.size() < arguments) return false;
  return std::all_of(parameters.begin() + static_cast<std::ptrdiff_t>(arguments), parameters.end(),
                     [&](TokenRange one) {
                       for (size_t i = one.begin; i < one.end; ++i) {
                         if (syntax.token(i).Is("=")) return true;
                       }
                       return false;
                     });
}

/// The result of a lambda, which sees the variables around it.
HostValue CallLambda(HostState& state, const HostFrame& frame, const HostValue& lambda,
                     const HostCall& call) {
  HostFrame inside = frame;
  const auto parameters = SplitArguments(state.syntax, lambda.parameters, true);
  for (size_t p = 0; p < std::min(parameters.size(), call.arguments.size()); ++p) {
    const auto variable = std::make_shared<HostVariable>();
    variable->name = state.syntax.token(parameters[p].end - 1).text;
    variable->value = call.arguments[p];
    if (variable->value.Is(Kind::kNumber)) variable->value.plain = false;
    inside.variables[variable->name] = variable;
  }
  inside.result.reset();
  Walker(state, inside).Statements(lambda.body);
  return inside.result.value_or(HostValue::Unknown());
}

}  // namespace

RelevantNames RelevantFunctions(const CudaSyntax& syntax,
                                const std::vector<const KernelLaunch*>& launches) {
  RelevantNames relevant;
  for (const KernelLaunch* launch : launches) {
    if (launch->function < syntax.functions.size())
      relevant.insert(syntax.functions[launch->function].name);
  }
  for (size_t before = SIZE_MAX; before != relevant.size();) {
    before = relevant.size();
    for (const HostFunction& function : syntax.functions) {
      if (!relevant.contains(function.name) &&
          Walker::IsRelevantText(syntax, function.body, relevant))
        relevant.insert(function.name);
    }
  }
  return relevant;
}

bool IsFunction(const CudaSyntax& syntax, std::string_view name) {
  return std::ranges::find(syntax.functions, name, &HostFunction::name) != syntax.functions.end();
}

void WalkFrom(HostState& state, size_t function, std::optional<int64_t> argc) {
  HostFrame frame;
  frame.function = function;
  BindParameters(state, frame, nullptr, nullptr);
  const HostFunction& start = state.syntax.functions[function];
  const auto parameters = SplitArguments(state.syntax, start.parameters, true);
  if (argc && !parameters.empty() && start.name == "main") {
    const auto name = state.syntax.token(parameters[0].end - 1).text;
    if (const HostCell cell = FindCell(state, frame, name))
      cell->value = HostValue::Number(std::to_string(*argc));
  }
  Walker(state, frame).Statements(start.body);
}

std::optional<HostValue> CallFunction(HostState& state, HostFrame& frame, const HostCall& call) {
  const HostCell variable = FindCell(state, frame, call.name);
  const bool lambda = variable && variable->value.Is(Kind::kLambda);
  if (!lambda && !IsFunction(state.syntax, call.name)) return std::nullopt;
  if (state.calls >= kMostCalls || state.reached != nullptr) return HostValue::Unknown();
  ++state.calls;
  const int loops = std::exchange(state.loops, 0);
  HostValue result = HostValue::Unknown();
  for (size_t f = 0; f < state.syntax.functions.size(); ++f) {
    const HostFunction& function = state.syntax.functions[f];
    if (lambda || function.name != call.name || !function.of_class.empty() ||
        !Accepts(state.syntax, function, call.arguments.size()))
      continue;
    HostFrame inside;
    inside.function = f;
    BindParameters(state, inside, &call, &frame);
    Walker(state, inside).Statements(function.body);
    result = inside.result.value_or(HostValue::Unknown());
    break;
  }
  if (lambda) result = CallLambda(state, frame, HostValue(variable->value), call);
  state.loops = loops;
  --state.calls;
  return result;
}

}  // namespace atunner
