#include "atunner/rewrites/analysis/source_facts.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "atunner/rewrites/source/loop_uses.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

/// The text as an expression of ours: members become names, and / is C's for whole numbers.
std::string ExpressionText(const CudaSyntax& syntax, TokenRange range) {
  std::string text;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax.token(i);
    const bool number = token.kind == Token::Kind::kNumber;
    if (token.Is(".")) {
      text += '_';
      continue;
    }
    const bool member = i > range.begin && syntax.token(i - 1).Is(".");
    if (!text.empty() && !member) text += ' ';
    std::string_view word = token.text;
    while (number && word.size() > 1 && !word.starts_with("0x") &&
           std::string_view("uUlLfF").contains(word.back()))
      word.remove_suffix(1);
    text += token.Is("/") ? "//" : word;
  }
  return text;
}

/// Values of names for one thread in one iteration.
class Place {
 public:
  void Set(const std::string& name, int64_t value) { values_[name] = value; }

  std::optional<int64_t> Evaluate(const CudaSyntax& syntax, TokenRange range) const {
    const auto expression = Expr::Parse(ExpressionText(syntax, range));
    if (!expression) return std::nullopt;
    const auto value = expression->EvaluateInt(Bindings(values_));
    return value ? std::optional(*value) : std::nullopt;
  }

 private:
  Dims values_;
};

/// Walks the statements in the order of the source, with the values of one thread.
class Reader {
 public:
  Reader(const Subject& subject, const RenderedKernel& kernel, const KernelSpec& spec)
      : subject_(subject), syntax_(subject.syntax()) {
    facts_.kernel = subject.kernel().name;
    for (Place* place : {&here_, &next_thread_, &next_iteration_}) Start(*place, kernel, spec);
    next_thread_.Set("threadIdx_x", 2);
  }

  SourceFacts Run() {
    Read(subject_.body(), 0);
    FindWords();
    return std::move(facts_);
  }

 private:
  void Start(Place& place, const RenderedKernel& kernel, const KernelSpec& spec) const {
    const ConcreteStep& launch = subject_.launch();
    const auto triple = [&](const std::string& name, uint32_t x, uint32_t y, uint32_t z) {
      place.Set(name + "_x", x);
      place.Set(name + "_y", y);
      place.Set(name + "_z", z);
    };
    triple("threadIdx", 1, 1, 0);
    triple("blockIdx", 1, 1, 0);
    triple("blockDim", launch.block.x, launch.block.y, launch.block.z);
    triple("gridDim", launch.grid.x, launch.grid.y, launch.grid.z);
    const std::vector<ArgBinding>& args = kernel.plan.steps.front().args;
    const auto& parameters = subject_.kernel().parameters;
    const Bindings sizes = Bindings(spec.dims).Add(spec.attributes);
    for (size_t i = 0; i < std::min(args.size(), parameters.size()); ++i) {
      if (args[i].kind != ArgBinding::Kind::kScalar) continue;
      if (const auto value = args[i].value.EvaluateInt(sizes))
        place.Set(parameters[i].name, *value);
    }
    for (const FileConstant& constant : syntax_.constants) {
      const CudaSyntax text = ParseCuda(constant.value);
      if (const auto value = place.Evaluate(text, {0, text.lexed.tokens.size()}))
        place.Set(constant.name, *value);
    }
  }

  /// A whole number that a declaration or a loop begins with.
  void Define(const std::string& name, TokenRange value) {
    for (Place* place : {&here_, &next_thread_, &next_iteration_}) {
      if (const auto number = place->Evaluate(syntax_, value)) place->Set(name, *number);
    }
  }

  void Read(const std::vector<Statement>& statements, int depth) {
    for (const Statement& statement : statements) {
      if (statement.kind == Kind::kDeclaration) Declare(statement);
      if (statement.IsLoop()) {
        Loop(statement, depth);
        continue;
      }
      if (statement.children.empty())
        Accesses(statement.range, depth);
      else
        Accesses(statement.condition, depth);
      Read(statement.children, depth);
    }
  }

  void Declare(const Statement& statement) {
    const TokenRange left = UpTo(syntax_, statement.range, "=");
    if (syntax_.token(statement.range.begin).Is("__shared__"))
      shared_.push_back(
          std::string(syntax_.token(UpTo(syntax_, statement.range, "[").end - 1).text));
    if (left.end < statement.range.end)
      Define(std::string(syntax_.token(left.end - 1).text),
             UpTo(syntax_, {left.end + 1, statement.range.end - 1}, ","));
  }

  void Loop(const Statement& statement, int depth) {
    LoopFact fact{syntax_.token(statement.range.begin).line, depth, "", std::nullopt};
    fact.head = statement.kind == Kind::kFor
                    ? subject_.Text({statement.init.begin, statement.step.end})
                    : subject_.Text(statement.condition);
    const auto counted = AsCountedLoop(subject_, statement);
    if (counted) {
      Define(counted->variable, counted->begin);
      const auto begin = here_.Evaluate(syntax_, counted->begin),
                 end = here_.Evaluate(syntax_, counted->end);
      if (begin) next_iteration_.Set(counted->variable, *begin + 1);
      if (begin && end) fact.trips = std::max<int64_t>(0, *end - *begin);
    }
    facts_.loops.push_back(std::move(fact));
    in_counted_loop_ = counted.has_value();
    Read(statement.children, depth + 1);
    if (counted) Define(counted->variable, counted->begin);
    in_counted_loop_ = false;
  }

  std::optional<int64_t> Stride(const Place& next, TokenRange subscript) const {
    const auto here = here_.Evaluate(syntax_, subscript), there = next.Evaluate(syntax_, subscript);
    if (!here || !there) return std::nullopt;
    return *there - *here;
  }

  void Accesses(TokenRange range, int depth) {
    for (const ElementRead& one : ReadsIn(subject_, range)) {
      const bool global = subject_.FindParameter(one.array) != nullptr;
      const bool shared = std::ranges::find(shared_, one.array) != shared_.end();
      const bool declared = shared && syntax_.token(range.begin).Is("__shared__");
      if ((!global && !shared) || declared) continue;
      AccessFact fact{syntax_.token(one.whole.begin).line,
                      one.array,
                      subject_.Text(one.subscript),
                      false,
                      shared,
                      std::nullopt,
                      std::nullopt};
      const Token& behind = syntax_.token(one.whole.end);
      fact.store = one.whole.begin == range.begin && behind.text.ends_with('=') && !behind.Is("==");
      fact.thread_stride = Stride(next_thread_, one.subscript);
      if (depth > 0 && in_counted_loop_) fact.loop_stride = Stride(next_iteration_, one.subscript);
      facts_.accesses.push_back(std::move(fact));
    }
  }

  void FindWords() {
    const TokenRange body = subject_.kernel().body;
    for (size_t i = body.begin; i < body.end; ++i) {
      const Token& token = syntax_.token(i);
      const std::string_view text = token.text;
      if (text == "__syncthreads") facts_.barriers.push_back(token.line);
      if (token.kind == Token::Kind::kWord && text.starts_with("atomic"))
        facts_.atomics.push_back(token.line);
      const bool literal = token.kind == Token::Kind::kNumber && !text.starts_with("0x") &&
                           text.contains('.') && text.back() != 'f' && text.back() != 'F';
      if (text == "double" || literal) facts_.doubles.push_back(token.line);
    }
    const auto last = std::ranges::unique(facts_.doubles);
    facts_.doubles.erase(last.begin(), last.end());
  }

  const Subject& subject_;
  const CudaSyntax& syntax_;
  Place here_, next_thread_, next_iteration_;
  std::vector<std::string> shared_;
  bool in_counted_loop_ = false;
  SourceFacts facts_;
};

}  // namespace

std::string_view PatternOf(const AccessFact& access) {
  if (!access.thread_stride) return "unknown";
  const int64_t stride = std::abs(*access.thread_stride);
  return stride == 0 ? "broadcast" : stride == 1 ? "coalesced" : "strided";
}

SourceFacts FactsOf(const Subject& subject, const RenderedKernel& kernel, const KernelSpec& spec) {
  return Reader(subject, kernel, spec).Run();
}

}  // namespace atunner::rewrites
