#include "atunner/model/expr/expr_parser.h"

#include <cctype>
#include <cstdlib>
#include <optional>

namespace atunner {
namespace {

using Node = Expr::Node;
using Kind = Node::Kind;

constexpr int kMaxDepth = 64;  // a level of parentheses costs a dozen frames
/// A chain a + b + … is a tree as deep as it is long, and trees are walked and destroyed
/// recursively.
constexpr int kMaxOperators = 500;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Node> Run() {
    auto node = Conditional();
    if (!node) return node;
    SkipSpace();
    if (at_ < text_.size()) return Expected("the end or an operator");
    return node;
  }

 private:
  // Precedence from loosest to tightest: conditional, or, and, not, comparison, | ^ & shift, sum,
  // product, unary, power.
  Result<Node> Conditional() {
    if (++depth_ > kMaxDepth)
      return Invalid("expression is nested too deeply", std::string(text_.substr(0, 60)));
    ATUNNER_TRY(Node first, Binary(0));
    if (Word("if")) {
      ATUNNER_TRY(Node condition, Binary(0));
      if (!Word("else")) return Expected("'else'");
      ATUNNER_TRY(Node other, Conditional());
      first = MakeConditional(std::move(condition), std::move(first), std::move(other));
    } else if (Symbol("?")) {
      ATUNNER_TRY(Node yes, Conditional());
      if (!Symbol(":")) return Expected("':'");
      ATUNNER_TRY(Node no, Conditional());
      first = MakeConditional(std::move(first), std::move(yes), std::move(no));
    }
    --depth_;
    return first;
  }

  static Node MakeConditional(Node condition, Node yes, Node no) {
    Node node{.kind = Kind::kConditional,
              .op = {},
              .constant = {},
              .name = {},
              .children = {},
              .compare_ops = {}};
    node.children.push_back(std::move(condition));
    node.children.push_back(std::move(yes));
    node.children.push_back(std::move(no));
    return node;
  }

  Result<Node> Binary(int level) {
    switch (level) {
      case 0:
        return Logical(Kind::kOr, "or", "||", 1);
      case 1:
        return Logical(Kind::kAnd, "and", "&&", 2);
      case 2:
        return Not();
      case 3:
        return Comparison();
      case 4:
        return LeftAssociative({"|"}, 5);
      case 5:
        return LeftAssociative({"^"}, 6);
      case 6:
        return LeftAssociative({"&"}, 7);
      case 7:
        return LeftAssociative({"<<", ">>"}, 8);
      case 8:
        return LeftAssociative({"+", "-"}, 9);
      case 9:
        return LeftAssociative({"//", "*", "/", "%"}, 10);
      default:
        return Unary();
    }
  }

  Result<Node> Logical(Kind kind, std::string_view word, std::string_view symbol, int next) {
    ATUNNER_TRY(Node left, Binary(next));
    while (Word(word) || Symbol(symbol)) {
      if (++operators_ > kMaxOperators) return Expected("fewer operators");
      ATUNNER_TRY(Node right, Binary(next));
      left = Join(kind, "", std::move(left), std::move(right));
    }
    return left;
  }

  Result<Node> Not() {
    if (Word("not") || (Peek("!") && !Peek("!=") && Symbol("!"))) {
      if (++depth_ > kMaxDepth) return Expected("fewer 'not's");
      ATUNNER_TRY(Node operand, Not());
      --depth_;
      return Prefix("not", std::move(operand));
    }
    return Binary(3);
  }

  Result<Node> Comparison() {
    ATUNNER_TRY(Node left, Binary(4));
    Node chain{.kind = Kind::kCompare,
               .op = {},
               .constant = {},
               .name = {},
               .children = {},
               .compare_ops = {}};
    chain.children.push_back(std::move(left));
    for (;;) {
      if (std::optional<std::string> op = CompareOperator()) {
        ATUNNER_TRY(Node right, Binary(4));
        chain.children.push_back(std::move(right));
        chain.compare_ops.push_back(*op);
      } else if (chain.children.size() == 1 && (Peek("in") || Peek("not"))) {
        const size_t before = at_;
        const bool negated = Word("not");
        if (!Word("in")) {
          at_ = before;
          break;
        }
        return Membership(std::move(chain.children[0]), negated);
      } else {
        break;
      }
    }
    return chain.children.size() == 1 ? std::move(chain.children[0]) : std::move(chain);
  }

  std::optional<std::string> CompareOperator() {
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (Peek("<<") || Peek(">>")) return std::nullopt;
      if (Symbol(op)) return std::string(op);
    }
    return std::nullopt;
  }

  Result<Node> Membership(Node needle, bool negated) {
    char close = 0;
    if (Symbol("["))
      close = ']';
    else if (Symbol("("))
      close = ')';
    else if (Symbol("{"))
      close = '}';
    else
      return Expected("a list after 'in'");
    Node node{.kind = Kind::kIn,
              .op = negated ? "not in" : "in",
              .constant = {},
              .name = {},
              .children = {},
              .compare_ops = {}};
    node.children.push_back(std::move(needle));
    ATUNNER_RETURN_IF_ERROR(List(close, node.children));
    return node;
  }

  Status List(char close, std::vector<Node>& items) {
    const std::string closing(1, close);
    while (!Symbol(closing)) {
      auto item = Conditional();
      if (!item) return std::unexpected(item.error());
      items.push_back(std::move(*item));
      if (Symbol(",")) continue;
      if (!Symbol(closing)) return Expected("',' or '" + closing + "'");
      break;
    }
    return {};
  }

  Result<Node> LeftAssociative(std::initializer_list<std::string_view> ops, int next) {
    ATUNNER_TRY(Node left, Binary(next));
    for (;;) {
      std::string_view found;
      for (std::string_view op : ops) {
        // `*` must not eat half of `**`, nor `&`/`|` half of `&&`/`||`.
        if (Peek(op) && !((op == "*" && Peek("**")) || (op == "&" && Peek("&&")) ||
                          (op == "|" && Peek("||")))) {
          found = op;
          break;
        }
      }
      if (found.empty()) return left;
      Symbol(found);
      if (++operators_ > kMaxOperators) return Expected("fewer operators");
      ATUNNER_TRY(Node right, Binary(next));
      left = Join(Kind::kBinary, found, std::move(left), std::move(right));
    }
  }

  Result<Node> Unary() {
    for (std::string_view op : {"-", "+", "~"}) {
      if (!Symbol(op)) continue;
      if (++depth_ > kMaxDepth) return Expected("fewer signs");
      ATUNNER_TRY(Node operand, Unary());
      --depth_;
      if (op == "+") return operand;
      return Prefix(op, std::move(operand));
    }
    ATUNNER_TRY(Node base, Primary());
    if (!Symbol("**")) return base;
    if (++depth_ > kMaxDepth) return Expected("fewer powers");
    ATUNNER_TRY(Node exponent, Unary());
    --depth_;
    return Join(Kind::kBinary, "**", std::move(base), std::move(exponent));
  }

  Result<Node> Primary() {
    SkipSpace();
    if (at_ >= text_.size()) return Expected("a value");
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      ATUNNER_TRY(Node inner, Conditional());
      if (!Symbol(")")) return Expected("')'");
      return inner;
    }
    if (c == '\'' || c == '"') return String(c);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return Number();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') return NameOrCall();
    return Expected("a value");
  }

  Result<Node> String(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Expected("a closing quote");
    Node node = Constant(std::string(text_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
    return node;
  }

  Result<Node> Number() {
    const std::string rest(text_.substr(at_, 64));
    char* end = nullptr;
    const double real = std::strtod(rest.c_str(), &end);
    const std::string digits = rest.substr(0, static_cast<size_t>(end - rest.c_str()));
    if (digits.empty()) return Expected("a number");
    at_ += digits.size();
    if (digits.find_first_of(".eEpPnN") != std::string::npos && !digits.starts_with("0x"))
      return Constant(real);
    errno = 0;
    const long long whole = std::strtoll(digits.c_str(), nullptr, 0);
    if (errno == ERANGE) return Expected("a number that fits 64 bits");
    return Constant(static_cast<int64_t>(whole));
  }

  Result<Node> NameOrCall() {
    std::string word = Identifier();
    if (word == "True" || word == "true") return Constant(true);
    if (word == "False" || word == "false") return Constant(false);
    if (word == "and" || word == "or" || word == "in" || word == "if" || word == "else")
      return Expected("a value");
    while (Peek(".") && at_ + 1 < text_.size() &&
           std::isalpha(static_cast<unsigned char>(text_[at_ + 1]))) {
      ++at_;  // `math.ceil`, `np.prod`: the module's name carries no meaning here
      word = Identifier();
    }
    if (Symbol("(")) {
      Node node{.kind = Kind::kCall,
                .op = word,
                .constant = {},
                .name = {},
                .children = {},
                .compare_ops = {}};
      ATUNNER_RETURN_IF_ERROR(List(')', node.children));
      return node;
    }
    if (Symbol("[")) {  // p["block_size_x"], as in Kernel Tuner's lambdas
      ATUNNER_TRY(Node index, Conditional());
      if (!Symbol("]")) return Expected("']'");
      if (const auto* text = std::get_if<std::string>(&index.constant);
          index.kind == Kind::kConstant && text)
        return Name(*text);
      return Expected("a quoted name in [ ]");
    }
    return Name(std::move(word));
  }

  std::string Identifier() {
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  static Node Constant(Value value) {
    return {.kind = Kind::kConstant,
            .op = {},
            .constant = std::move(value),
            .name = {},
            .children = {},
            .compare_ops = {}};
  }
  static Node Name(std::string name) {
    return {.kind = Kind::kName,
            .op = {},
            .constant = {},
            .name = std::move(name),
            .children = {},
            .compare_ops = {}};
  }
  static Node Prefix(std::string_view op, Node operand) {
    Node node{.kind = Kind::kUnary,
              .op = std::string(op),
              .constant = {},
              .name = {},
              .children = {},
              .compare_ops = {}};
    node.children.push_back(std::move(operand));
    return node;
  }
  static Node Join(Kind kind, std::string_view op, Node left, Node right) {
    Node node{.kind = kind,
              .op = std::string(op),
              .constant = {},
              .name = {},
              .children = {},
              .compare_ops = {}};
    node.children.push_back(std::move(left));
    node.children.push_back(std::move(right));
    return node;
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Peek(std::string_view token) {
    SkipSpace();
    return text_.substr(at_).starts_with(token);
  }
  bool Symbol(std::string_view token) {
    if (!Peek(token)) return false;
    at_ += token.size();
    return true;
  }
  bool Word(std::string_view word) {
    if (!Peek(word)) return false;
    const size_t end = at_ + word.size();
    if (end < text_.size() &&
        (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
      return false;
    at_ = end;
    return true;
  }
  std::unexpected<Error> Expected(std::string_view what) {
    return Invalid("expected " + std::string(what) + " at column " + std::to_string(at_ + 1),
                   "expression '" + std::string(text_) + "'");
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

Result<Expr::Node> ParseExprTree(std::string_view text) { return Parser(text).Run(); }

}  // namespace atunner
