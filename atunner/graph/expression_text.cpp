#include "atunner/graph/expression_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/base/closest_name.h"
#include "atunner/graph/operation.h"

namespace atunner::graph {
namespace {

/// The deepest nesting of calls of the reader.
constexpr int kDeepest = 200;
/// Subexpressions with so many operations inside each other are written with a name, so that
/// neither writing nor reading an expression nests deeper.
constexpr int kDeepestPart = 48;

struct Infix {
  std::string_view symbol;
  ScalarOp op;
  int level;  ///< operators with a higher level bind tighter
};
constexpr Infix kInfix[] = {
    {"|", ScalarOp::kOr, 1},
    {"^", ScalarOp::kXor, 2},
    {"&", ScalarOp::kAnd, 3},
    {"==", ScalarOp::kEqual, 4},
    {"!=", ScalarOp::kNotEqual, 4},
    {"<", ScalarOp::kLess, 5},
    {"<=", ScalarOp::kLessEqual, 5},
    {">", ScalarOp::kGreater, 5},
    {">=", ScalarOp::kGreaterEqual, 5},
    {"<<", ScalarOp::kShiftLeft, 6},
    {">>", ScalarOp::kShiftRight, 6},
    {"+", ScalarOp::kAdd, 7},
    {"-", ScalarOp::kSubtract, 7},
    {"*", ScalarOp::kMultiply, 8},
    {"/", ScalarOp::kDivide, 8},
};
constexpr int kUnaryLevel = 9;
constexpr int kAtomLevel = 10;

const Infix* InfixOf(ScalarOp op) {
  const auto at = std::ranges::find(kInfix, op, &Infix::op);
  return at == std::end(kInfix) ? nullptr : at;
}

class Reader {
 public:
  Reader(Lexer& lexer, ScalarBuilder& builder, const NameMeaning& meaning)
      : lexer_(lexer), builder_(builder), meaning_(meaning) {}

  Result<int> Whole() {
    if (!lexer_.IsWord("let")) return Binary(1);
    lexer_.Take();
    do {
      const Token at = lexer_.peek();
      ATUNNER_TRY(const std::string name, lexer_.Name("a name"));
      ATUNNER_RETURN_IF_ERROR(lexer_.Expect("="));
      ATUNNER_TRY(const int value, Binary(1));
      const auto same = std::ranges::find(locals_, name, &std::pair<std::string, int>::first);
      if (same != locals_.end() || meaning_(name))
        return lexer_.WrongAt(at, "'" + name + "' is defined twice");
      locals_.emplace_back(name, value);
    } while (lexer_.Accept(","));
    if (!lexer_.IsWord("in"))
      return lexer_.Wrong("expected 'in', " + lexer_.Found(), "let t = exp(x) in t / (1 + t)");
    lexer_.Take();
    return Binary(1);
  }

 private:
  /// Adds the location of `token` to an error that has none.
  Result<int> Placed(const Token& token, Result<int> result) const {
    if (!result && result.error().where.empty()) result.error().where = lexer_.LocationOf(token);
    return result;
  }

  Result<int> Binary(int level) {
    if (++depth_ > kDeepest) return lexer_.Wrong("the expression is nested too deeply");
    ATUNNER_TRY(int left, Unary());
    while (true) {
      const Token token = lexer_.peek();
      const auto infix = std::ranges::find(kInfix, token.text, &Infix::symbol);
      if (token.kind != Token::Kind::kSymbol || infix == std::end(kInfix) || infix->level < level)
        break;
      lexer_.Take();
      ATUNNER_TRY(const int right, Binary(infix->level + 1));
      ATUNNER_TRY(left, Placed(token, builder_.Apply(infix->op, {left, right})));
    }
    --depth_;
    return left;
  }

  Result<int> Unary() {
    if (++depth_ > kDeepest) return lexer_.Wrong("the expression is nested too deeply");
    const Token token = lexer_.peek();
    Result<int> result = 0;
    if (lexer_.Accept("-")) {
      ATUNNER_TRY(const int value, Unary());
      result = Placed(token, builder_.Apply(ScalarOp::kNegate, {value}));
    } else if (lexer_.Accept("~")) {
      ATUNNER_TRY(const int value, Unary());
      result = Placed(token, builder_.Apply(ScalarOp::kNot, {value}));
    } else {
      result = Power();
    }
    --depth_;
    return result;
  }

  Result<int> Power() {
    ATUNNER_TRY(const int base, Atom());
    const Token token = lexer_.peek();
    if (!lexer_.Accept("**")) return base;
    ATUNNER_TRY(const int exponent, Unary());  // right-associative, and may have a sign
    return Placed(token, builder_.Apply(ScalarOp::kPower, {base, exponent}));
  }

  Result<int> Atom() {
    const Token token = lexer_.peek();
    if (lexer_.Accept("(")) {
      ATUNNER_TRY(const int value, Binary(1));
      ATUNNER_RETURN_IF_ERROR(lexer_.Expect(")"));
      return value;
    }
    if (token.kind == Token::Kind::kNumber || lexer_.IsWord("inf") || lexer_.IsWord("nan")) {
      ATUNNER_TRY(const double value, lexer_.Number());
      return builder_.Number(value);
    }
    if (lexer_.IsWord("true") || lexer_.IsWord("false"))
      return builder_.Literal(DType::kBool, graph::Whole(lexer_.Take().text == "true"));
    if (token.kind != Token::Kind::kName)
      return lexer_.Wrong("expected a value, " + lexer_.Found());
    const std::string name(lexer_.Take().text);
    if (lexer_.Is("(")) return Call(token, name);
    for (const auto& [local, value] : locals_) {
      if (local == name) return value;
    }
    return Placed(token, meaning_(name));
  }

  Result<int> Call(const Token& token, const std::string& name) {
    if (FromCallName(name))
      return lexer_.WrongAt(token, "'" + name + "' inside of an expression", kOwnLine);
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect("("));
    if (name == "index" || name == "extent") {
      ATUNNER_TRY(const int64_t axis, lexer_.Integer());
      ATUNNER_RETURN_IF_ERROR(lexer_.Expect(")"));
      if (axis >= 0 || axis < -64)
        return lexer_.WrongAt(token, name + "(" + std::to_string(axis) + ")",
                              "axes count from the end: index(-1) is the last");
      return name == "index" ? builder_.Index(static_cast<int>(axis))
                             : builder_.Extent(static_cast<int>(axis));
    }
    if (name == "cast" || name == "round_to") return Conversion(token, name);
    std::vector<int> args;
    if (!lexer_.Is(")")) {
      do {
        ATUNNER_TRY(const int arg, Binary(1));
        args.push_back(arg);
      } while (lexer_.Accept(","));
    }
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(")"));
    return Placed(token, Applied(name, args));
  }

  Result<int> Conversion(const Token& token, const std::string& name) {
    ATUNNER_TRY(int value, Binary(1));
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(","));
    const Token at = lexer_.peek();
    ATUNNER_TRY(const std::string type, lexer_.Name("a type"));
    const auto dtype = ParseDType(type);
    if (!dtype)
      return lexer_.WrongAt(at, "unknown type '" + type + "'", "types are " + DTypeNames());
    ATUNNER_TRY(const bool saturate, Saturates());
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(")"));
    if (saturate) {
      ATUNNER_TRY(value, Placed(token, builder_.Saturate(value, *dtype)));
    }
    return Placed(token,
                  name == "cast" ? builder_.Cast(value, *dtype) : builder_.Round(value, *dtype));
  }

  /// ", saturate=true", ", saturate=false" or nothing.
  Result<bool> Saturates() {
    if (!lexer_.Accept(",")) return false;
    if (!lexer_.IsWord("saturate")) return lexer_.Wrong("expected 'saturate', " + lexer_.Found());
    lexer_.Take();
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect("="));
    const bool saturate = lexer_.IsWord("true");
    if (!saturate && !lexer_.IsWord("false"))
      return lexer_.Wrong("expected true or false, " + lexer_.Found());
    lexer_.Take();
    return saturate;
  }

  Result<int> Applied(const std::string& name, const std::vector<int>& args) {
    if (name == "select" || name == "uniform") {
      const size_t wanted = name == "select" ? 3 : 2;
      if (args.size() != wanted)
        return Invalid("'" + name + "' takes " + std::to_string(wanted) + " operands");
      return name == "select" ? builder_.Select(args[0], args[1], args[2])
                              : builder_.Uniform(args[0], args[1]);
    }
    const auto op = FindScalarFunction(name);
    if (op) return builder_.Apply(*op, args);
    std::vector<std::string> names = {"select", "cast", "round_to", "uniform", "index", "extent"};
    for (int i = 0; i < static_cast<int>(ScalarOp::kParameter); ++i)
      names.emplace_back(InfoOf(static_cast<ScalarOp>(i)).name);
    const std::string near = ClosestName(name, names);
    return Invalid("unknown function '" + name + "'", {},
                   near.empty() ? "docs/graph.md lists them" : "did you mean '" + near + "'?");
  }

  Lexer& lexer_;
  ScalarBuilder& builder_;
  const NameMeaning& meaning_;
  std::vector<std::pair<std::string, int>> locals_;
  int depth_ = 0;
};

class Printer {
 public:
  Printer(const ScalarExpression& expression, const std::vector<std::string>& names)
      : nodes_(expression.nodes()),
        names_(names),
        uses_(nodes_.size(), 0),
        nested_(nodes_.size(), 0),
        local_(nodes_.size()) {
    for (const ScalarNode& node : nodes_) {
      for (int arg : node.args) {
        if (arg >= 0) ++uses_[arg];
      }
    }
  }

  std::string Whole() {
    std::string lets;
    for (size_t i = 0; i + 1 < nodes_.size(); ++i) {
      if (ArityOf(nodes_[i].op) == 0) continue;
      nested_[i] = NestingOf(nodes_[i]);
      if (uses_[i] < 2 && nested_[i] < kDeepestPart) continue;
      const std::string text = Text(static_cast<int>(i), 0);
      local_[i] = FreshName();
      lets += (lets.empty() ? "let " : ", ") + local_[i] + " = " + text;
    }
    return (lets.empty() ? "" : lets + " in ") + Text(static_cast<int>(nodes_.size()) - 1, 0);
  }

 private:
  /// Operations inside each other in the text of a node whose operands have their names already.
  int NestingOf(const ScalarNode& node) const {
    int nesting = 0;
    for (int i = 0; i < ArityOf(node.op); ++i) {
      const int arg = node.args[i];
      if (local_[arg].empty()) nesting = std::max(nesting, nested_[arg]);
    }
    return nesting + 1;
  }

  std::string FreshName() {
    while (true) {
      std::string name = "t" + std::to_string(next_++);
      if (std::ranges::find(names_, name) == names_.end()) return name;
    }
  }

  std::string Text(int index, int level) const {
    if (!local_[index].empty()) return local_[index];
    const ScalarNode& node = nodes_[index];
    if (const Infix* infix = InfixOf(node.op)) {
      const std::string text = Text(node.args[0], infix->level) + " " + std::string(infix->symbol) +
                               " " + Text(node.args[1], infix->level + 1);
      return infix->level < level ? "(" + text + ")" : text;
    }
    if (node.op == ScalarOp::kNegate || node.op == ScalarOp::kNot) {
      // "-1" would be read as one literal, so a literal behind a minus gets parentheses.
      const bool literal = nodes_[node.args[0]].op == ScalarOp::kLiteral;
      const std::string text = (node.op == ScalarOp::kNot ? "~" : "-") +
                               Text(node.args[0], literal ? kAtomLevel : kUnaryLevel);
      return kUnaryLevel < level ? "(" + text + ")" : text;
    }
    return Atom(node);
  }

  std::string Atom(const ScalarNode& node) const {
    const auto type = [&](int number) { return std::string(Name(static_cast<DType>(number))); };
    switch (node.op) {
      case ScalarOp::kParameter:
        return names_[node.number];
      case ScalarOp::kLiteral:
        return Literal(node);
      case ScalarOp::kIndex:
        return fmt::format("index({})", node.number);
      case ScalarOp::kExtent:
        return fmt::format("extent({})", node.number);
      case ScalarOp::kCast:
        return "cast(" + Text(node.args[0], 0) + ", " + type(static_cast<int>(node.dtype)) + ")";
      case ScalarOp::kRoundTo:
        return "round_to(" + Text(node.args[0], 0) + ", " + type(node.number) + ")";
      default:
        break;
    }
    std::string text = node.op == ScalarOp::kSelect    ? "select("
                       : node.op == ScalarOp::kUniform ? "uniform("
                                                       : std::string(InfoOf(node.op).name) + "(";
    for (int i = 0; i < ArityOf(node.op); ++i) text += (i > 0 ? ", " : "") + Text(node.args[i], 0);
    return text + ")";
  }

  /// A literal with its type, unless its neighbours give it one.
  std::string Literal(const ScalarNode& node) const {
    if (node.dtype == DType::kBool) return node.literal.whole ? "true" : "false";
    const bool exact = IsFloat(node.dtype) || std::abs(node.literal.whole) <= (int64_t{1} << 53);
    if (!exact) {  // the text form has float64 numbers only: write high and low words
      return fmt::format("(cast({}, int64) << 32 | cast({}, int64))", node.literal.whole >> 32,
                         node.literal.whole & 0xffffffff);
    }
    const std::string number = PrintNumber(ToReal(node.dtype, node.literal));
    return TypedByNeighbour(node) ? (number[0] == '-' ? "(" + number + ")" : number)
                                  : "cast(" + number + ", " + std::string(Name(node.dtype)) + ")";
  }

  /// True if every user of this literal has another operand, which gives it the type.
  bool TypedByNeighbour(const ScalarNode& literal) const {
    const int index = static_cast<int>(&literal - nodes_.data());
    bool typed = index + 1 < static_cast<int>(nodes_.size());
    for (const ScalarNode& user : nodes_) {
      const int arity = ArityOf(user.op);
      bool uses = false;
      bool other = false;
      for (int i = user.op == ScalarOp::kSelect ? 1 : 0; i < arity; ++i) {
        uses |= user.args[i] == index;
        other |= nodes_[user.args[i]].op != ScalarOp::kLiteral;
      }
      if (uses &&
          (!other || user.op == ScalarOp::kCast || user.op == ScalarOp::kRoundTo || arity < 2))
        typed = false;
    }
    return typed;
  }

  const std::vector<ScalarNode>& nodes_;
  const std::vector<std::string>& names_;
  std::vector<int> uses_;
  std::vector<int> nested_;  ///< by node: operations inside each other in its text
  std::vector<std::string> local_;
  int next_ = 0;
};

}  // namespace

Result<int> ReadExpression(Lexer& lexer, ScalarBuilder& builder, const NameMeaning& meaning) {
  const Token first = lexer.peek();
  ATUNNER_TRY(const int root, Reader(lexer, builder, meaning).Whole());
  const int depth = Depths(builder.nodes())[root];
  if (depth <= kDeepestExpression) return root;
  return lexer.WrongAt(first,
                       fmt::format("an expression of {} operations one after the other; at most {} "
                                   "are allowed",
                                   depth, kDeepestExpression),
                       "give its parts names on lines of their own");
}

Result<ScalarExpression> ParseExpression(std::string_view text, const std::vector<DType>& types) {
  Lexer lexer(text, "");
  ScalarBuilder builder(types);
  const NameMeaning meaning = [&](const std::string& name) -> Result<int> {
    const int number = name.size() == 1 ? name[0] - 'a' : -1;
    if (number < 0 || number >= static_cast<int>(types.size()))
      return Invalid("unknown name '" + name + "'");
    return builder.Parameter(number);
  };
  const auto located = [&](Error error) {
    error.where = "expression '" + std::string(text) + "'" +
                  (error.where.empty() ? "" : " at " + error.where);
    return std::unexpected(std::move(error));
  };
  const auto root = ReadExpression(lexer, builder, meaning);
  if (!root) return located(root.error());
  lexer.Accept("\n");
  if (lexer.peek().kind == Token::Kind::kSymbol || lexer.peek().kind == Token::Kind::kName)
    return located(lexer.Wrong("expected the end, " + lexer.Found()).error());
  auto finished = builder.Finish(*root);
  if (!finished) return located(finished.error());
  return finished;
}

std::string PrintExpression(const ScalarExpression& expression,
                            const std::vector<std::string>& names) {
  return Printer(expression, names).Whole();
}

std::string PrintNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

}  // namespace atunner::graph
