// The one expression language: constraints, launch sizes, shapes, work formulas.
// Python's syntax and meaning (`//` floors, `/` divides, chained comparisons, `and or not`, `in`,
// `x if c else y`) with C's
// `&& || ! ?:` accepted too, so that Kernel Tuner's and BAT's restriction strings work as they are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/value/value.h"

namespace atunner {

/// Names an expression may use. Lookups search the pieces in order; the pieces must outlive the
/// object.
class Bindings {
 public:
  Bindings() = default;
  explicit Bindings(const Dims& dims) { Add(dims); }
  Bindings& Add(const Dims& dims);
  Bindings& Add(const Attributes& values);
  /// Parallel arrays of equal length: parameter names and their values.
  Bindings& Add(std::span<const std::string> names, std::span<const Value> values);
  const Value* Find(std::string_view name, Value& scratch) const;

 private:
  struct Parallel {
    std::span<const std::string> names;
    std::span<const Value> values;
  };
  std::vector<const Dims*> dims_;
  std::vector<const Attributes*> attributes_;
  std::vector<Parallel> parallel_;
};

/// An immutable parsed expression; cheap to copy.
class Expr {
 public:
  struct Node;
  /// The constant 1: the neutral launch size.
  Expr() : Expr(int64_t{1}) {}
  Expr(int64_t constant);  // NOLINT(google-explicit-constructor): grid = {M / 8, 1, 1} should read
                           // like that
  Expr(int constant)
      : Expr(static_cast<int64_t>(constant)) {}  // NOLINT(google-explicit-constructor)

  /// kInvalidInput points at the column: "constraint 'a >': expected a value at column 4".
  static Result<Expr> Parse(std::string_view text);
  /// For texts that are part of the program: a syntax error ends it.
  static Expr MustParse(std::string_view text);

  /// kInvalidInput for an unknown name, a division by zero, a wrong type or an overflow.
  Result<Value> Evaluate(const Bindings& bindings) const;
  /// Evaluates to an integer; floats with an integral value are accepted, others are an error.
  Result<int64_t> EvaluateInt(const Bindings& bindings) const;
  Result<bool> EvaluateBool(const Bindings& bindings) const;

  /// Names used, each once, in order of appearance.
  std::vector<std::string> Names() const;
  const std::string& text() const { return text_; }
  bool operator==(const Expr& other) const { return text_ == other.text_; }

  const Node& root() const { return *root_; }

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

/// The syntax tree, for code that compiles expressions (expr_program.h).
struct Expr::Node {
  enum class Kind : uint8_t {
    kConstant,
    kName,
    kUnary,
    kBinary,
    kCompare,
    kAnd,
    kOr,
    kConditional,
    kIn,
    kCall
  };
  Kind kind = Kind::kConstant;
  /// kUnary: "-", "not", "~"; kBinary: "+ - * / // % ** & | ^ << >>"; kCall: function name; kIn:
  /// "in" or "not in".
  std::string op;
  Value constant;
  std::string name;
  std::vector<Node> children;
  std::vector<std::string> compare_ops;  ///< kCompare: children.size() - 1 of them
};

}  // namespace atunner
