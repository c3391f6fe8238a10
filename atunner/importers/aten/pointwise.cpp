// Element-wise operators and conversions.
#include <fmt/format.h>

#include <cctype>
#include <string>

#include "atunner/graph/expression_text.h"
#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

bool IsWordBegin(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The words of an expression that are arguments.
std::vector<std::string_view> ArgumentsIn(const AtenCall& call, std::string_view text) {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : call.parameters()) {
    for (size_t at = text.find(parameter.name); at != std::string_view::npos;
         at = text.find(parameter.name, at + 1)) {
      const size_t end = at + parameter.name.size();
      if ((at > 0 && IsWordPart(text[at - 1])) || (end < text.size() && IsWordPart(text[end])))
        continue;
      names.push_back(parameter.name);
      break;
    }
  }
  return names;
}

/// The type in which an operator computes: the common type of its operands, or the result's type
/// where integers become floats.
DType ComputeType(AtenCall& call, const std::vector<std::string_view>& names) {
  const DType common = call.CommonType(names);
  const DType result = call.ResultType(common);
  return IsFloat(result) && !IsFloat(common) ? result : common;
}

Value AsResult(AtenCall& call, Value y) { return call.g.Cast(y, call.ResultType(call.TypeOf(y))); }

/// An expression over arguments: tensors become operands of the map, numbers become literals.
Value MapArguments(AtenCall& call, std::string_view text) {
  const std::vector<std::string_view> names = ArgumentsIn(call, text);
  const DType type = ComputeType(call, names);
  std::map<std::string, std::string, std::less<>> replacements;
  std::vector<Value> operands;
  for (const std::string_view name : names) {
    if (call.IsTensor(name)) {
      replacements.emplace(name, std::string(1, static_cast<char>('a' + operands.size())));
      operands.push_back(call.g.Cast(call.Tensor(name), type));
    } else {
      const std::string number = graph::PrintNumber(call.Real(name));
      replacements.emplace(name, fmt::format("cast({}, {})", number, Name(type)));
    }
  }
  std::string body;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    if (IsWordBegin(text[at])) {
      while (end < text.size() && IsWordPart(text[end])) ++end;
    } else {
      ++end;
    }
    const std::string_view word = text.substr(at, end - at);
    const auto replaced = replacements.find(word);
    body += replaced == replacements.end() ? word : std::string_view(replaced->second);
    at = end;
  }
  return call.g.Map(body, operands);
}

}  // namespace

std::vector<Value> Expression(AtenCall& call, std::string_view text) {
  return {AsResult(call, MapArguments(call, text))};
}

std::vector<Value> FromLibrary(AtenCall& call, std::string_view text) {
  const std::string_view name = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), name.size() + 1));
  Attributes attributes;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(' '));
    const size_t equals = pair.find('=');
    attributes.emplace(pair.substr(0, equals), call.Real(pair.substr(equals + 1)));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
  }
  std::vector<std::string_view> names;
  for (const Parameter& parameter : call.parameters()) {
    if (call.IsTensor(parameter.name)) names.push_back(parameter.name);
  }
  const DType type = ComputeType(call, names);
  std::vector<Value> operands;
  for (const std::string_view each : names)
    operands.push_back(call.g.Cast(call.Tensor(each), type));
  return {AsResult(call, call.Library(name, type, operands, attributes))};
}

std::vector<Value> AddScaled(AtenCall& call, std::string_view text) {
  const bool scaled = call.Real("alpha") != 1;
  if (text == "add") return Expression(call, scaled ? "self + alpha * other" : "self + other");
  if (text == "sub") return Expression(call, scaled ? "self - alpha * other" : "self - other");
  return Expression(call, scaled ? "other - alpha * self" : "other - self");
}

/// Whole exponents up to 4 are products: a general power is slower and less exact.
std::vector<Value> Power(AtenCall& call, std::string_view) {
  if (call.IsTensor("exponent")) return Expression(call, "pow(self, exponent)");
  const double exponent = call.Real("exponent");
  if (exponent == 2) return Expression(call, "self * self");
  if (exponent == 3) return Expression(call, "self * self * self");
  if (exponent == 4) return Expression(call, "let t = self * self in t * t");
  if (exponent == 0.5) return Expression(call, "sqrt(self)");
  if (exponent == -0.5) return Expression(call, "rsqrt(self)");
  if (exponent == -1) return Expression(call, "1 / self");
  return Expression(call, "pow(self, exponent)");
}

std::vector<Value> Where(AtenCall& call, std::string_view) {
  const DType type = call.CommonType({"self", "other"});
  const auto operand = [&](std::string_view name) {
    return call.IsTensor(name) ? call.g.Cast(call.Tensor(name), type)
                               : call.g.Scalar(type, call.Real(name));
  };
  const Value condition = call.g.Cast(call.Tensor("condition"), DType::kBool);
  return {AsResult(call,
                   call.g.Map("select(a, b, c)", {condition, operand("self"), operand("other")}))};
}

std::vector<Value> MaskedFill(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const Value value = call.IsTensor("value") ? call.g.Cast(call.Tensor("value"), call.TypeOf(x))
                                             : call.g.Scalar(call.TypeOf(x), call.Real("value"));
  return {
      call.g.Map("select(b, c, a)", {x, call.g.Cast(call.Tensor("mask"), DType::kBool), value})};
}

std::vector<Value> Clamp(AtenCall& call, std::string_view) {
  const bool low = call.Has("min");
  const bool high = call.Has("max");
  const char* body = low && high
                         ? "let t = select(self < min, min, self) in select(t > max, max, t)"
                     : low  ? "select(self < min, min, self)"
                     : high ? "select(self > max, max, self)"
                            : "self";
  return Expression(call, body);
}

std::vector<Value> Divide(AtenCall& call, std::string_view) {
  if (!call.Has("rounding_mode")) return Expression(call, "self / other");
  const std::string mode = call.Text("rounding_mode");
  if (mode == "floor") return Expression(call, "floor_div(self, other)");
  if (IsFloat(call.CommonType({"self", "other"}))) return Expression(call, "trunc(self / other)");
  return Expression(call,
                    "let q = floor_div(self, other), r = self - q * other in "
                    "select((r != 0) & ((self < 0) ^ (other < 0)), q + 1, q)");
}

std::vector<Value> Gelu(AtenCall& call, std::string_view) {
  return FromLibrary(call, call.Text("approximate") == "tanh" ? "gelu_tanh" : "gelu");
}

std::vector<Value> Softplus(AtenCall& call, std::string_view) {
  return Expression(call,
                    "let t = self * beta in select(t > threshold, self, (maximum(t, 0) + "
                    "log1p(exp(-abs(t)))) / beta)");
}

std::vector<Value> Glu(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const int64_t half = call.Size(x, axis) / 2;
  if (!call.Check(half * 2 == call.Size(x, axis), "the axis has no two equal halves")) return {};
  const Value first = call.g.Add(graph::Slice{axis, 0, half, 1}, {x});
  const Value second = call.g.Add(graph::Slice{axis, half, 2 * half, 1}, {x});
  return {call.Library("glu", call.TypeOf(x), {first, second})};
}

/// One slope for all channels, or one for each: the second axis.
std::vector<Value> Prelu(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  Value slope = call.Tensor("weight");
  const size_t rank = call.ShapeOf(x).size();
  if (rank > 2 && call.ShapeOf(slope).size() == 1) {
    Integers sizes(rank - 1, 1);
    sizes[0] = call.Size(slope, 0);
    slope = call.Reshape(slope, sizes);
  }
  return {call.Library("prelu", call.TypeOf(x), {x, slope})};
}

std::vector<Value> Same(AtenCall& call, std::string_view) {
  return {call.Tensor(call.parameters()[0].name)};
}

std::vector<Value> Dropout(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input");
  const bool drops = call.Has("train") && call.Flag("train") && call.Real("p") != 0;
  call.Check(!drops, "dropout in training draws random numbers", "export the model after `eval()`");
  return {x};
}

std::vector<Value> Convert(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const DType type = call.Has("dtype") ? call.Type("dtype") : call.ResultType(call.TypeOf(x));
  // PyTorch's bool is true for whatever differs from zero.
  if (type == DType::kBool && call.TypeOf(x) != DType::kBool) return {call.g.Map("a != 0", {x})};
  return {call.g.Cast(x, type)};
}

}  // namespace atunner::importers
