#include "atunner/cuda_text/cuda_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atunner::graph {
namespace {

/// The faster form of an operator in kernels/graph/narrow.cuh; empty if there is none.
std::string_view NarrowForm(const ScalarNode& node) {
  if (node.dtype != DType::kFloat32 && !(IsFloat(node.dtype) && SizeOf(node.dtype) == 2)) return {};
  switch (node.op) {
    case ScalarOp::kDivide:
      return "quotient_narrow($0, $1)";
    case ScalarOp::kErf:
      return "erf_narrow($0)";
    case ScalarOp::kTanh:
      return "tanh_narrow($0)";
    case ScalarOp::kSigmoid:
      return "sigmoid_narrow($0)";
    case ScalarOp::kExp:
      return "exp_narrow($0)";
    case ScalarOp::kExpm1:
      return "expm1_narrow($0)";
    case ScalarOp::kLog:
      return "log_narrow($0)";
    case ScalarOp::kLog1p:
      return "log1p_narrow($0)";
    default:
      return {};
  }
}

class Writer {
 public:
  Writer(const ScalarExpression& expression, const CudaContext& context)
      : nodes_(expression.nodes()),
        context_(context),
        uses_(nodes_.size(), 0),
        texts_(nodes_.size()) {
    for (const ScalarNode& node : nodes_) {
      for (int arg : node.args) {
        if (arg >= 0) ++uses_[arg];
      }
    }
  }

  CudaText Run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      texts_[i] = Text(nodes_[i]);
      const bool last = i + 1 == nodes_.size();
      const bool atom = ArityOf(nodes_[i].op) == 0 && nodes_[i].op != ScalarOp::kIndex;
      if (last || atom || (uses_[i] < 2 && texts_[i].size() < kLongest)) continue;
      const std::string name = fmt::format("{}{}", context_.temporary, result_.statements.size());
      result_.statements.push_back(
          fmt::format("const {} {} = {};", TypeOf(nodes_[i].dtype), name, Bare(texts_[i])));
      texts_[i] = name;
    }
    result_.value = Bare(texts_.back());
    return std::move(result_);
  }

 private:
  // Longer texts become statements of their own, for readability.
  static constexpr size_t kLongest = 60;

  std::string TypeOf(DType dtype) const { return CudaArithmetic(dtype, context_.wide); }

  /// `text` without parentheses around all of it.
  static std::string Bare(const std::string& text) {
    if (text.empty() || text.front() != '(' || text.back() != ')') return text;
    int depth = 0;
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth == 0) return text;
    }
    return text.substr(1, text.size() - 2);
  }

  std::string Text(const ScalarNode& node) const {
    switch (node.op) {
      case ScalarOp::kParameter:
        return context_.operands[node.number];
      case ScalarOp::kLiteral:
        return CudaLiteral(node.dtype, node.literal, context_.wide);
      case ScalarOp::kIndex:
      case ScalarOp::kExtent:
        return "(" + context_.place(node.op, node.number) + ")";
      case ScalarOp::kSelect:
        return fmt::format("({} ? {} : {})", texts_[node.args[0]], Bare(texts_[node.args[1]]),
                           Bare(texts_[node.args[2]]));
      case ScalarOp::kCast:
        return Cast(node);
      case ScalarOp::kRoundTo:
        return Rounded(node);
      case ScalarOp::kUniform:
        return fmt::format("(({})uniform({}, {}))", TypeOf(node.dtype), Bare(texts_[node.args[0]]),
                           Bare(texts_[node.args[1]]));
      default:
        return Operator(node);
    }
  }

  std::string Operator(const ScalarNode& node) const {
    const std::string_view narrow = context_.narrow ? NarrowForm(node) : std::string_view();
    const std::string_view form = narrow.empty() ? InfoOf(node.op).cuda : narrow;
    const bool call = form.ends_with(")");
    std::string text;
    for (size_t i = 0; i < form.size(); ++i) {
      if (form[i] != '$') {
        text += form[i];
        continue;
      }
      const std::string& argument = texts_[node.args[form[++i] - '0']];
      text += call ? Bare(argument) : argument;
    }
    if (node.op == ScalarOp::kNot && node.dtype == DType::kBool) text[0] = '!';
    // C++ computes narrow integers as int; the cast wraps the result to the type.
    const bool wraps = !IsFloat(node.dtype) && node.dtype != DType::kBool && SizeOf(node.dtype) < 4;
    if (wraps) return fmt::format("({})({})", CudaName(node.dtype), text);
    return call ? text : "(" + text + ")";
  }

  std::string Cast(const ScalarNode& node) const {
    const DType from = nodes_[node.args[0]].dtype;
    const std::string& x = texts_[node.args[0]];
    const std::string to = TypeOf(node.dtype);
    if (to == TypeOf(from)) return x;
    if (node.dtype == DType::kBool) return fmt::format("({} != 0)", x);
    if (IsFloat(from) && !IsFloat(node.dtype)) return fmt::format("({})to_whole({})", to, Bare(x));
    return fmt::format("({}){}", to, x);
  }

  std::string Rounded(const ScalarNode& node) const {
    const auto to = static_cast<DType>(node.number);
    const std::string& x = texts_[node.args[0]];
    const std::string type = TypeOf(node.dtype);
    if (to == DType::kFloat64) return x;
    if (to == DType::kFloat32) return fmt::format("({})(float){}", type, x);
    // The functions for 8-bit floats are in kernels/graph/float8.cuh.
    if (SizeOf(to) == 1) return fmt::format("({})(float){}((float){})", type, Name(to), x);
    return fmt::format("({})to_real({}((float){}))", type, CudaName(to), x);
  }

  const std::vector<ScalarNode>& nodes_;
  const CudaContext& context_;
  std::vector<int> uses_;
  std::vector<std::string> texts_;  ///< by node, in parentheses where other operators need them
  CudaText result_;
};

}  // namespace

std::string CudaArithmetic(DType dtype, bool wide) {
  if (IsFloat(dtype)) return wide || dtype == DType::kFloat64 ? "double" : "float";
  return std::string(CudaName(dtype));
}

namespace {

std::string WholeLiteral(DType dtype, Cell value) {
  // -2147483648 is a minus and a number that does not fit into int, so it would have a wider
  // type.
  if (value.whole == INT64_MIN) return "(-9223372036854775807ll - 1)";
  if (value.whole == INT32_MIN && SizeOf(dtype) == 4) return "(-2147483647 - 1)";
  const std::string text = fmt::format("{}{}", value.whole, SizeOf(dtype) == 8 ? "ll" : "");
  const std::string typed = SizeOf(dtype) < 4 || dtype == DType::kUInt32
                                ? fmt::format("({}){}", CudaName(dtype), text)
                                : text;
  return value.whole < 0 || typed != text ? "(" + typed + ")" : text;
}

}  // namespace

std::string CudaLiteral(DType dtype, Cell value, bool wide) {
  if (dtype == DType::kBool) return value.whole ? "true" : "false";
  if (!IsFloat(dtype)) return WholeLiteral(dtype, value);
  const bool is_double = CudaArithmetic(dtype, wide) == "double";
  const double v = value.real;
  if (std::isnan(v))
    return is_double ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fc00000)";
  if (std::isinf(v)) {
    if (is_double)
      return fmt::format("__longlong_as_double({}ll)",
                         v > 0 ? "0x7ff0000000000000" : "0xfff0000000000000");
    return fmt::format("__int_as_float({})", v > 0 ? "0x7f800000" : "0xff800000");
  }
  std::string text = is_double ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  if (!is_double && std::isinf(static_cast<float>(v)))
    return CudaLiteral(dtype, Real(std::copysign(INFINITY, v)), wide);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return std::signbit(v) ? "(" + text + ")" : text;
}

CudaText ToCuda(const ScalarExpression& expression, const CudaContext& context) {
  return Writer(expression, context).Run();
}

bool HasNarrowForms(const ScalarExpression& expression) {
  return std::ranges::any_of(expression.nodes(),
                             [](const ScalarNode& node) { return !NarrowForm(node).empty(); });
}

double ScalarFlops(const ScalarExpression& expression) {
  double count = 0;
  for (const ScalarNode& node : expression.nodes())
    count += IsTableOp(node.op) && IsFloat(expression.nodes()[node.args[0]].dtype);
  return count;
}

}  // namespace atunner::graph
