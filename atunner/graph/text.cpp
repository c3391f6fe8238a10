#include "atunner/graph/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "atunner/base/closest_name.h"
#include "atunner/graph/expression_text.h"
#include "atunner/graph/lexer.h"

namespace atunner::graph {
namespace {

constexpr size_t kMostAxes = 16;

Result<Extent> ReadExtent(Lexer& lexer) {
  Extent extent(1);
  do {
    if (lexer.peek().kind == Token::Kind::kName) {
      extent = extent * Extent::Symbol(std::string(lexer.Take().text));
    } else {
      ATUNNER_TRY(const int64_t number, lexer.Integer());
      extent = extent * Extent(number);
    }
  } while (lexer.Accept("*"));
  return extent;
}

Result<Shape> ReadShape(Lexer& lexer) {
  ATUNNER_RETURN_IF_ERROR(lexer.Expect("["));
  Shape shape;
  if (lexer.Accept("]")) return shape;
  do {
    ATUNNER_TRY(Extent extent, ReadExtent(lexer));
    shape.push_back(std::move(extent));
    if (shape.size() > kMostAxes)
      return lexer.Wrong("more than " + std::to_string(kMostAxes) + " axes");
  } while (lexer.Accept(","));
  ATUNNER_RETURN_IF_ERROR(lexer.Expect("]"));
  return shape;
}

Result<DType> ReadDType(Lexer& lexer) {
  const Token token = lexer.peek();
  ATUNNER_TRY(const std::string name, lexer.Name("a type"));
  const auto dtype = ParseDType(name);
  if (!dtype)
    return lexer.WrongAt(token, "unknown type '" + name + "'", "types are " + DTypeNames());
  return *dtype;
}

Result<TensorType> ReadType(Lexer& lexer) {
  TensorType type;
  ATUNNER_TRY(type.dtype, ReadDType(lexer));
  ATUNNER_TRY(type.shape, ReadShape(lexer));
  return type;
}

/// Reads the value of one field by its type.
struct FieldReader {
  Lexer& lexer;

  template <class T>
  static Status Store(Result<T> read, T& field) {
    if (!read) return std::unexpected(read.error());
    field = *std::move(read);
    return {};
  }
  Status Read(int64_t& field) { return Store(lexer.Integer(), field); }
  Status Read(double& field) { return Store(lexer.Number(), field); }
  Status Read(Shape& field) { return Store(ReadShape(lexer), field); }
  Status Read(std::optional<DType>& field) {
    const auto dtype = ReadDType(lexer);
    if (!dtype) return std::unexpected(dtype.error());
    field = *dtype;
    return {};
  }
  Status Read(bool& field) {
    if (!lexer.IsWord("true") && !lexer.IsWord("false"))
      return lexer.Wrong("expected true or false, " + lexer.Found());
    field = lexer.Take().text == "true";
    return {};
  }
  Status Read(std::string& field) {
    if (lexer.peek().kind != Token::Kind::kString)
      return lexer.Wrong("expected \"text\", " + lexer.Found());
    field = lexer.Take().text;
    return {};
  }
  Status Read(std::vector<int64_t>& field) {
    ATUNNER_RETURN_IF_ERROR(lexer.Expect("["));
    if (lexer.Accept("]")) return {};
    do {
      ATUNNER_TRY(const int64_t number, lexer.Integer());
      field.push_back(number);
    } while (lexer.Accept(","));
    return lexer.Expect("]");
  }
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : lexer_(text, file), builder_("graph") {}

  Result<ValidGraph> Run() {
    SkipLines();
    const Token start = lexer_.peek();
    if (!lexer_.IsWord("graph")) return lexer_.Wrong("expected 'graph NAME', " + lexer_.Found());
    lexer_.Take();
    ATUNNER_TRY(const std::string name, lexer_.Name("the graph's name"));
    builder_ = GraphBuilder(name);
    ATUNNER_RETURN_IF_ERROR(EndOfLine());
    while (lexer_.peek().kind != Token::Kind::kEnd) {
      builder_.SetLocation(lexer_.LocationOf(lexer_.peek()));
      ATUNNER_RETURN_IF_ERROR(Line());
      if (!builder_.ok()) break;  // Finish returns the error
    }
    builder_.SetLocation(lexer_.LocationOf(start));
    return std::move(builder_).Finish();
  }

 private:
  void SkipLines() {
    while (lexer_.peek().kind == Token::Kind::kNewLine) lexer_.Take();
  }
  Status EndOfLine() {
    if (lexer_.peek().kind != Token::Kind::kNewLine && lexer_.peek().kind != Token::Kind::kEnd)
      return lexer_.Wrong("expected the end of the line, " + lexer_.Found());
    SkipLines();
    return {};
  }

  Status Line() {
    const auto statement = [&](std::string_view word,
                               Status (Parser::*read)()) -> std::optional<Status> {
      if (!lexer_.IsWord(word)) return std::nullopt;
      lexer_.Take();
      return (this->*read)();
    };
    auto status = statement("dim", &Parser::ReadSymbol);
    if (!status) status = statement("input", &Parser::ReadInput);
    if (!status) status = statement("output", &Parser::ReadOutput);
    if (!status) status = ReadNode();
    if (!*status) return *status;
    return EndOfLine();
  }

  Status ReadSymbol() {
    ATUNNER_TRY(const std::string name, lexer_.Name("a symbol"));
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect("="));
    Range range;
    ATUNNER_TRY(range.low, lexer_.Integer());
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(".."));
    ATUNNER_TRY(range.high, lexer_.Integer());
    return builder_.Symbol(name, range);
  }

  Status Define(const Token& token, const std::string& name, Value value) {
    if (!values_.try_emplace(name, value).second)
      return lexer_.WrongAt(token, "'" + name + "' is defined twice");
    return {};
  }

  Status ReadInput() {
    const Token token = lexer_.peek();
    ATUNNER_TRY(const std::string name, lexer_.Name("the input's name"));
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(":"));
    ATUNNER_TRY(TensorType type, ReadType(lexer_));
    return Define(token, name, builder_.Input(name, std::move(type)));
  }

  Status ReadOutput() {
    const Token token = lexer_.peek();
    ATUNNER_TRY(const std::string name, lexer_.Name("a value"));
    std::string of = name;
    if (lexer_.Accept("=")) {
      ATUNNER_TRY(of, lexer_.Name("a value"));
    }
    ATUNNER_TRY(const Value value, Find(token, of));
    builder_.Output(name, value);
    return {};
  }

  Result<Value> Find(const Token& token, const std::string& name) {
    if (const auto at = values_.find(name); at != values_.end()) return at->second;
    std::vector<std::string> names;
    for (const auto& [known, value] : values_) names.push_back(known);
    const std::string near = ClosestName(name, names);
    return lexer_.WrongAt(
        token, "unknown value '" + name + "'",
        near.empty() ? "values are defined above their use" : "did you mean '" + near + "'?");
  }

  Status ReadNode() {
    const Token token = lexer_.peek();
    ATUNNER_TRY(const std::string name, lexer_.Name("a definition"));
    std::optional<TensorType> stated;
    if (lexer_.Accept(":")) {
      ATUNNER_TRY(stated, ReadType(lexer_));
    }
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect("="));
    ATUNNER_TRY(const Value value, ReadRight(stated));
    if (!builder_.ok()) return {};
    if (stated && !(builder_.TypeOf(value) == *stated))
      return lexer_.WrongAt(token, "'" + name + "' is stated to be " + stated->ToString() +
                                       " and is " + builder_.TypeOf(value).ToString());
    ATUNNER_RETURN_IF_ERROR(Define(token, name, value));
    if (builder_.NodeOf(value).name.empty()) builder_.Name(value, name);
    return {};
  }

  /// The right side of a definition: a call, a constant or an expression.
  Result<Value> ReadRight(const std::optional<TensorType>& stated) {
    const Token right = lexer_.peek();
    const bool calls = right.kind == Token::Kind::kName && lexer_.peek(1).text == "(";
    const auto operation = calls ? FromCallName(right.text) : std::nullopt;
    if (operation) return ReadCall(*operation);
    return calls && right.text == "constant" ? ReadConstant(right, stated) : ReadMap(right, stated);
  }

  Result<Value> ReadCall(Operation operation) {
    const Token start = lexer_.Take();
    const std::string call(start.text);
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect("("));
    std::vector<Value> operands;
    std::set<std::string> given;
    while (!lexer_.Is(")")) {
      const Token token = lexer_.peek();
      ATUNNER_TRY(const std::string name, lexer_.Name("an operand or a field"));
      if (lexer_.Accept("=")) {
        ATUNNER_RETURN_IF_ERROR(ReadField(token, call, name, operation));
        if (!given.insert(name).second)
          return lexer_.WrongAt(token, "'" + name + "' is given twice");
      } else {
        if (!lexer_.Is(",") && !lexer_.Is(")"))
          return lexer_.WrongAt(token, "an operand of " + call + " that is no name", kOwnLine);
        ATUNNER_TRY(const Value value, Find(token, name));
        operands.push_back(value);
      }
      if (!lexer_.Is(")")) ATUNNER_RETURN_IF_ERROR(lexer_.Expect(","));
    }
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(")"));
    if (lexer_.peek().kind == Token::Kind::kSymbol)
      return lexer_.WrongAt(start, "'" + call + "' inside of an expression", kOwnLine);
    const std::string missing = MissingField(operation, given);
    if (!missing.empty()) return lexer_.Wrong(call + " needs " + missing + "=…");
    return builder_.Add(std::move(operation), std::move(operands));
  }

  /// The last required field that is not among the given ones; empty if there is none.
  static std::string MissingField(Operation& operation, const std::set<std::string>& given) {
    std::string missing;
    std::visit(
        [&](auto& one) {
          VisitFields(one, [&]<class... Fallback>(const char* field, auto&, Fallback...) {
            if (sizeof...(Fallback) == 0 && !given.contains(field)) missing = field;
          });
        },
        operation);
    return missing;
  }

  Status ReadField(const Token& token, const std::string& call, const std::string& name,
                   Operation& operation) {
    std::optional<Status> status;
    std::vector<std::string> names;
    FieldReader reader{lexer_};
    std::visit(
        [&](auto& one) {
          VisitFields(one, [&](const char* field, auto& value, auto...) {
            names.emplace_back(field);
            if (field == name) status = reader.Read(value);
          });
        },
        operation);
    if (status) return *status;
    const std::string near = ClosestName(name, names);
    return lexer_.WrongAt(token, call + " has no field '" + name + "'",
                          near.empty() ? "" : "did you mean '" + near + "'?");
  }

  Result<Value> ReadConstant(const Token& token, const std::optional<TensorType>& stated) {
    if (!stated)
      return lexer_.WrongAt(token, "a constant without a type", "c: float32[2] = constant(1, 2)");
    lexer_.Take();
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect("("));
    std::vector<Cell> cells;
    do {
      if (IsFloat(stated->dtype)) {
        ATUNNER_TRY(const double value, lexer_.Number());
        cells.push_back(Real(value));
      } else {
        ATUNNER_TRY(const int64_t value, lexer_.Integer());
        cells.push_back(Whole(value));
      }
    } while (lexer_.Accept(","));
    ATUNNER_RETURN_IF_ERROR(lexer_.Expect(")"));
    return builder_.Constant(*stated, std::move(cells));
  }

  Result<Value> ReadMap(const Token& token, const std::optional<TensorType>& stated) {
    MapOperands operands = OperandsOfLine();
    ScalarBuilder scalar(operands.types);
    const NameMeaning meaning = [&](const std::string& name) -> Result<int> {
      const auto at = operands.numbers.find(name);
      if (at != operands.numbers.end()) return scalar.Parameter(at->second);
      auto unknown = Find(token, name).error();
      unknown.where.clear();  // the reader adds the location of the name
      return std::unexpected(std::move(unknown));
    };
    ATUNNER_TRY(int root, ReadExpression(lexer_, scalar, meaning));
    if (stated && scalar.node(root).op == ScalarOp::kLiteral) {
      ATUNNER_TRY(root, scalar.Cast(root, stated->dtype));
    }
    auto body = scalar.Finish(root);
    if (!body) {
      body.error().where = lexer_.LocationOf(token);
      return std::unexpected(body.error());
    }
    return builder_.Map(*std::move(body), std::move(operands.values),
                        stated ? stated->shape : Shape{});
  }

  /// The values that an expression names, and their numbers as its operands.
  struct MapOperands {
    std::vector<Value> values;
    std::vector<DType> types;
    std::map<std::string, int> numbers;
  };
  /// They are collected from the tokens up to the end of the line, because the builder of an
  /// expression needs the types of all operands in advance.
  MapOperands OperandsOfLine() {
    MapOperands operands;
    const auto ends = [](const Token& token) {
      return token.kind == Token::Kind::kNewLine || token.kind == Token::Kind::kEnd;
    };
    for (size_t i = 0; !ends(lexer_.peek(i)); ++i) {
      const Token& each = lexer_.peek(i);
      const auto at = each.kind == Token::Kind::kName ? values_.find(std::string(each.text))
                                                      : values_.end();
      const auto number = static_cast<int>(operands.values.size());
      if (at == values_.end() || !operands.numbers.try_emplace(at->first, number).second) continue;
      operands.values.push_back(at->second);
      operands.types.push_back(builder_.TypeOf(at->second).dtype);
    }
    return operands;
  }

  Lexer lexer_;
  GraphBuilder builder_;
  std::map<std::string, Value> values_;
};

/// Writes the value of one field by its type.
struct FieldWriter {
  static std::string Text(int64_t value) { return std::to_string(value); }
  static std::string Text(bool value) { return value ? "true" : "false"; }
  static std::string Text(double value) { return PrintNumber(value); }
  static std::string Text(const Shape& value) { return ToString(value); }
  static std::string Text(const std::string& value) { return "\"" + value + "\""; }
  static std::string Text(const std::optional<DType>& value) { return std::string(Name(*value)); }
  static std::string Text(const std::vector<int64_t>& value) {
    std::string text = "[";
    for (int64_t each : value) text += (text.size() > 1 ? ", " : "") + std::to_string(each);
    return text + "]";
  }
};

class GraphPrinter {
 public:
  explicit GraphPrinter(const ValidGraph& graph) : graph_(graph) {
    std::set<std::string> taken;
    for (const Node& node : graph.nodes()) taken.insert(node.name);
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      std::string name = graph.nodes()[id].name;
      for (std::string stem = "v"; name.empty(); stem += "_") {
        if (!taken.contains(stem + std::to_string(id))) name = stem + std::to_string(id);
      }
      names_.push_back(std::move(name));
    }
  }

  std::string Run() const {
    std::string text = "graph " + graph_.name() + "\n";
    for (const auto& [name, range] : graph_.symbols())
      text += fmt::format("dim {} = {}..{}\n", name, range.low, range.high);
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      const std::string head = names_[id] + ": " + node.type.ToString();
      text += node.As<Input>() ? "input " + head : head + " = " + Right(node);
      text += "\n";
    }
    for (const auto& output : graph_.outputs()) {
      const std::string& of = names_[output.node];
      text += "output " + output.name + (of == output.name ? "" : " = " + of) + "\n";
    }
    return text;
  }

 private:
  std::string Right(const Node& node) const {
    std::vector<std::string> operands;
    for (NodeId operand : node.operands) operands.push_back(names_[operand]);
    if (const auto* map = node.As<Map>()) return PrintExpression(map->body, operands);
    if (const auto* constant = node.As<Constant>()) {
      for (Cell cell : constant->values)
        operands.push_back(IsFloat(node.type.dtype) ? PrintNumber(cell.real)
                                                    : std::to_string(cell.whole));
      return fmt::format("constant({})", fmt::join(operands, ", "));
    }
    std::visit(
        [&](const auto& one) {
          VisitFields(one, [&](const char* field, const auto& value, const auto&... fallback) {
            if (((value == static_cast<std::decay_t<decltype(value)>>(fallback)) || ...)) return;
            operands.push_back(std::string(field) + "=" + FieldWriter::Text(value));
          });
        },
        node.operation);
    return fmt::format("{}({})", CallName(node.operation), fmt::join(operands, ", "));
  }

  const ValidGraph& graph_;
  std::vector<std::string> names_;
};

}  // namespace

Result<ValidGraph> Parse(std::string_view text, const std::string& file) {
  return Parser(text, file).Run();
}

std::string Print(const ValidGraph& graph) { return GraphPrinter(graph).Run(); }

}  // namespace atunner::graph
