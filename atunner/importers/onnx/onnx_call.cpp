#include "atunner/importers/onnx/onnx_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/importers/aten/aten_table.h"

namespace atunner::importers {

using graph::Value;

Value ConstantOf(graph::GraphBuilder& builder, const graph::Tensor& tensor) {
  return builder.Constant({tensor.dtype, graph::Shape(tensor.shape.begin(), tensor.shape.end())},
                          tensor.cells);
}

Value OnnxCall::In(size_t input) {
  if (!Has(input)) return Fail(fmt::format("the input {} is missing", input));
  return operands_[input]->value();
}

std::vector<Value> OnnxCall::AllInputs() {
  std::vector<Value> values;
  for (size_t i = 0; i < inputs(); ++i) values.push_back(In(i));
  return values;
}

std::optional<graph::Tensor> OnnxCall::Known(size_t input) {
  if (!Has(input)) return std::nullopt;
  auto known = operands_[input]->known();
  if (known) return *std::move(known);
  g.Fail(known.error());
  return std::nullopt;
}

bool OnnxCall::IsEmpty(size_t input) {
  const auto known = Known(input);
  return known && known->cells.empty();
}

Integers OnnxCall::Wholes(size_t input) {
  const auto known = Known(input);
  if (!known || IsFloat(known->dtype)) {
    Unsupported(fmt::format("the input {} is computed, or is not of integers", input),
                "shapes, axes and the like have to be constants of the model; "
                "`--bind NAME=FILE.pb` makes an input a constant");
    return {};
  }
  Integers wholes;
  for (const graph::Cell cell : known->cells) wholes.push_back(cell.whole);
  return wholes;
}

double OnnxCall::Number(size_t input) {
  const auto known = Known(input);
  if (known && known->cells.size() == 1) return graph::ToReal(known->dtype, known->cells[0]);
  Unsupported(fmt::format("the input {} is not a constant of one element", input));
  return 0;
}

const OnnxAttribute* OnnxCall::Find(std::string_view name) const {
  const auto found = std::ranges::find(node_.attributes, name, &OnnxAttribute::name);
  return found == node_.attributes.end() ? nullptr : &*found;
}

int64_t OnnxCall::Whole(std::string_view name, int64_t fallback) const {
  const OnnxAttribute* found = Find(name);
  return found == nullptr ? fallback : found->whole;
}

double OnnxCall::Real(std::string_view name, double fallback) const {
  const OnnxAttribute* found = Find(name);
  return found == nullptr ? fallback : found->real;
}

std::string OnnxCall::Text(std::string_view name, const std::string& fallback) const {
  const OnnxAttribute* found = Find(name);
  return found == nullptr ? fallback : found->text;
}

Integers OnnxCall::List(std::string_view name, const Integers& fallback) const {
  const OnnxAttribute* found = Find(name);
  return found == nullptr ? fallback : found->wholes;
}

Integers OnnxCall::ListOf(size_t input, std::string_view attribute, const Integers& fallback) {
  return Has(input) ? Wholes(input) : List(attribute, fallback);
}

int64_t OnnxCall::Axis(int64_t axis, int64_t rank) {
  if (!Check(axis >= -rank && axis < rank,
             fmt::format("the axis {} of a tensor of rank {}", axis, rank)))
    return 0;
  return axis < 0 ? axis + rank : axis;
}

Value OnnxCall::Constant(DType dtype, const Integers& sizes, const Integers& elements) {
  std::vector<graph::Cell> cells;
  for (const int64_t element : elements) cells.push_back(graph::Whole(element));
  return g.Constant({dtype, graph::Shape(sizes.begin(), sizes.end())}, std::move(cells));
}

Value OnnxCall::LessZeroPoint(size_t input, size_t zero_point) {
  const Value x = g.Cast(In(input), DType::kInt32);
  if (!Has(zero_point)) return x;
  Value zero = g.Cast(In(zero_point), DType::kInt32);
  if (Rank(zero) == 1 && Size(zero, 0) == 1) zero = Reshape(zero, {});
  if (input == 0 && Rank(zero) == 1) zero = Reshape(zero, {Size(zero, 0), 1});
  return g.Map("a - b", {x, zero});
}

Value OnnxCall::Saturated(Value x, DType type) {
  const int bits = static_cast<int>(SizeOf(type)) * 8;
  const bool is_unsigned = KindOf(type) == DTypeKind::kUnsigned;
  const double low = is_unsigned ? 0 : -std::ldexp(1, bits - 1);
  const double high = std::ldexp(1, is_unsigned ? bits : bits - 1) - 1;
  return g.Cast(g.Map(fmt::format("maximum({}, minimum({}, a))", low, high), {x}), type);
}

TensorRef OnnxCall::Ref(Value value) {
  std::string name = fmt::format("v{}", value.id);
  refs_.insert_or_assign(name, value);
  return {std::move(name)};
}

namespace {

const ExportedProgram& NoProgram() {
  static const ExportedProgram program;
  return program;
}

}  // namespace

std::vector<Value> OnnxCall::Aten(std::string_view target, std::vector<NamedArgument> arguments) {
  if (!g.ok()) return {};
  const AtenOperator* op = FindAten(target);
  ATUNNER_CHECK(op != nullptr);
  const ProgramNode node{std::string(target), std::move(arguments), {}};
  AtenCall call(g, node, op->parameters, refs_, NoProgram(), cache_);
  return op->build(call, op->text);
}

Value OnnxCall::Library(std::string_view name, DType dtype, const std::vector<Value>& operands,
                        const Attributes& attributes, size_t stated) {
  const ProgramNode node;
  const std::vector<Parameter> parameters;
  return AtenCall(g, node, parameters, refs_, NoProgram(), cache_)
      .Library(name, dtype, operands, attributes, stated);
}

std::vector<Value> OnnxCall::NoElements(DType dtype) {
  without_elements_ = dtype;
  return {};
}

Value OnnxCall::Unsupported(std::string what, std::string hint) {
  return g.Fail({ErrorCode::kUnsupported, std::move(what), {}, std::move(hint)});
}

}  // namespace atunner::importers
