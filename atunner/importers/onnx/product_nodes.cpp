// Matrix products and sums of products.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

/// The parts of an equation: one for each operand, and the result's.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

std::string WithoutSpaces(std::string_view text) {
  std::string kept;
  std::ranges::copy_if(text, std::back_inserter(kept), [](char c) { return c != ' '; });
  return kept;
}

/// Letters that occur once, in alphabetical order: the result of an equation without "->".
std::string ImplicitResult(const std::vector<std::string>& operands) {
  std::map<char, int> counts;
  for (const std::string& operand : operands) {
    for (const char c : operand) counts[c] += 1;
  }
  std::string result;
  for (const auto& [letter, count] : counts) {
    if (count == 1 && std::isalpha(static_cast<unsigned char>(letter)) != 0) result += letter;
  }
  return result;
}

Equation Parsed(const std::string& text) {
  Equation equation;
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (size_t comma = left.find(','); comma != std::string::npos; comma = left.find(',')) {
    equation.operands.push_back(left.substr(0, comma));
    left.erase(0, comma + 1);
  }
  equation.operands.push_back(left);
  equation.result = arrow == std::string::npos ? ImplicitResult(equation.operands)
                                               : text.substr(arrow + 2);
  if (arrow == std::string::npos && text.find("...") != std::string::npos)
    equation.result = "..." + equation.result;
  return equation;
}

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

/// Lower-case letters for all, and letters for the axes that "..." stands for.
bool Rename(OnnxCall& call, Equation& equation, const std::vector<Value>& operands) {
  std::map<char, char> names;
  std::string unused(kLetters);
  const auto rename = [&](std::string& part) {
    for (char& c : part) {
      if (c == '.') continue;
      if (!names.contains(c)) {
        if (unused.empty()) return false;
        names[c] = unused.back();
        unused.pop_back();
      }
      c = names[c];
    }
    return true;
  };
  size_t most = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!rename(equation.operands[i])) return false;
    const std::string& part = equation.operands[i];
    const auto rank = static_cast<size_t>(call.Rank(operands[i]));
    if (part.find("...") != std::string::npos && rank + 3 >= part.size())
      most = std::max(most, rank + 3 - part.size());
  }
  if (!rename(equation.result) || unused.size() < most) return false;
  const std::string open = unused.substr(0, most);
  const auto replace = [&](std::string& part, size_t axes) {
    const size_t at = part.find("...");
    if (at != std::string::npos) part.replace(at, 3, open.substr(most - axes));
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto rank = static_cast<size_t>(call.Rank(operands[i]));
    replace(equation.operands[i], rank + 3 - std::min(rank + 3, equation.operands[i].size()));
    if (equation.operands[i].size() != rank) return false;
  }
  replace(equation.result, most);
  return true;
}

/// Axes of the letters that `kept` lacks are summed over, and the others put into its order.
Value Arranged(OnnxCall& call, Value x, std::string letters, const std::string& kept) {
  Integers summed;
  std::string left;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (kept.find(letters[i]) == std::string::npos)
      summed.push_back(static_cast<int64_t>(i));
    else
      left += letters[i];
  }
  if (!summed.empty())
    x = call.g.Cast(call.g.Reduce(graph::Combine::kSum, x, summed), call.TypeOf(x));
  Integers order;
  for (const char letter : kept) order.push_back(static_cast<int64_t>(left.find(letter)));
  return left == kept ? x : call.g.Transpose(x, order);
}

bool HasRepeats(const std::string& letters) {
  return std::ranges::any_of(letters, [&](char c) { return std::ranges::count(letters, c) > 1; });
}

}  // namespace

std::vector<Value> MatMul(OnnxCall& call, std::string_view) {
  return call.Aten("aten.matmul.default",
                   {{"self", call.Ref(call.In(0))}, {"other", call.Ref(call.In(1))}});
}

/// alpha · A · B + beta · C, where A and B may be transposed.
std::vector<Value> Gemm(OnnxCall& call, std::string_view) {
  const std::string equation = fmt::format("{},{}->mn", call.Whole("transA", 0) != 0 ? "km" : "mk",
                                           call.Whole("transB", 0) != 0 ? "nk" : "kn");
  Value y = call.g.Contract(equation, call.In(0), call.In(1));
  const double alpha = call.Real("alpha", 1);
  const double beta = call.Real("beta", 1);
  if (alpha != 1) y = call.g.Map(fmt::format("a * {}", alpha), {y});
  if (!call.Has(2) || beta == 0) return {y};
  return {call.g.Map(beta == 1 ? "a + b" : fmt::format("a + b * {}", beta), {y, call.In(2)})};
}

std::vector<Value> Einsum(OnnxCall& call, std::string_view) {
  const std::vector<Value> operands = call.AllInputs();
  Equation equation = Parsed(WithoutSpaces(call.Text("equation", "")));
  if (!call.Check(!operands.empty() && operands.size() == equation.operands.size(),
                  "the equation has not as many operands as the node") ||
      !call.Check(Rename(call, equation, operands), "the equation does not fit its operands"))
    return {};
  if (std::ranges::any_of(equation.operands, HasRepeats))
    return {call.Unsupported("an einsum of a diagonal")};
  Value y = operands[0];
  std::string letters = equation.operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    // Letters that come later, or are in the result, stay.
    std::string later = equation.result;
    for (size_t next = i + 1; next < operands.size(); ++next) later += equation.operands[next];
    std::string kept;
    for (const char c : letters + equation.operands[i]) {
      if (later.find(c) != std::string::npos && kept.find(c) == std::string::npos) kept += c;
    }
    y = call.g.Contract(fmt::format("{},{}->{}", letters, equation.operands[i], kept), y,
                        operands[i]);
    letters = kept;
  }
  return {Arranged(call, y, letters, equation.result)};
}

/// The operands less their zero points, in 32-bit integers.
std::vector<Value> MatMulInteger(OnnxCall& call, std::string_view) {
  const Value a = call.LessZeroPoint(0, 2);
  const Value b = call.LessZeroPoint(1, 3);
  return call.Aten("aten.matmul.default", {{"self", call.Ref(a)}, {"other", call.Ref(b)}});
}

/// Operands, scales and zero points of a, b and y follow each other.
std::vector<Value> QuantisedMatMul(OnnxCall& call, std::string_view) {
  const Value a = call.LessZeroPoint(0, 2);
  const Value b = call.LessZeroPoint(3, 5);
  const auto product = call.Aten("aten.matmul.default",
                                 {{"self", call.Ref(a)}, {"other", call.Ref(b)}});
  if (product.empty()) return {};
  const Value scaled = call.g.Map("a * b * c / d", {call.g.Cast(product[0], DType::kFloat32),
                                                    call.In(1), call.In(4), call.In(6)});
  return {
      call.Saturated(call.g.Map("round(a) + b", {scaled, call.g.Cast(call.In(7), DType::kFloat32)}),
                     call.TypeOf(call.In(7)))};
}

}  // namespace atunner::importers::onnx
