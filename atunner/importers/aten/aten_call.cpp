#include "atunner/importers/aten/aten_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "atunner/graph/library/library.h"

namespace atunner::importers {

using graph::Extent;
using graph::Shape;
using graph::Value;

namespace {

/// Tensors have less than 2^40 elements. Larger numbers in a program are "to the end", or wrong;
/// limits keep what is computed of them from overflowing.
constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr int64_t kLargestStep = int64_t{1} << 22;  ///< of windows: size, stride, dilation, …

int64_t Bounded(int64_t value) { return std::clamp(value, -kMostElements, kMostElements); }

}  // namespace

AtenCall::AtenCall(graph::GraphBuilder& builder, const ProgramNode& node,
                   const std::vector<Parameter>& parameters, const Values& values,
                   const ExportedProgram& program, LibraryCache& cache)
    : GraphCall(builder),
      node_(node),
      parameters_(parameters),
      values_(values),
      program_(program),
      cache_(cache) {}

const Argument* AtenCall::Find(std::string_view name) const {
  const auto given = std::ranges::find(node_.arguments, name, &NamedArgument::name);
  if (given != node_.arguments.end()) return &given->value;
  const auto known = std::ranges::find(parameters_, name, &Parameter::name);
  return known != parameters_.end() && known->fallback ? &*known->fallback : nullptr;
}

template <class T>
const T* AtenCall::Get(std::string_view name, const char* wanted) {
  const Argument* argument = Find(name);
  const T* value = argument == nullptr ? nullptr : std::get_if<T>(argument);
  if (value == nullptr)
    Fail(argument == nullptr ? fmt::format("the argument '{}' is missing", name)
                             : fmt::format("the argument '{}' is not {}", name, wanted));
  return value;
}

bool AtenCall::Has(std::string_view name) const {
  const Argument* argument = Find(name);
  return argument != nullptr && !std::holds_alternative<std::monostate>(*argument);
}

bool AtenCall::IsTensor(std::string_view name) const {
  const Argument* argument = Find(name);
  return argument != nullptr && std::holds_alternative<TensorRef>(*argument);
}

bool AtenCall::HoldsText(std::string_view name) const {
  const Argument* argument = Find(name);
  return argument != nullptr && std::holds_alternative<std::string>(*argument);
}

Value AtenCall::Named(const TensorRef& tensor) {
  const auto at = values_.find(tensor.name);
  if (at != values_.end()) return at->second;
  return Fail("the value '" + tensor.name + "' is used before it is computed",
              "the graph has a cycle, or the operator that makes the value has fewer results");
}

Value AtenCall::Tensor(std::string_view name) {
  const auto* tensor = Get<TensorRef>(name, "a tensor");
  return tensor == nullptr ? Value{} : Named(*tensor);
}

std::vector<Value> AtenCall::Tensors(std::string_view name) {
  const auto* tensors = Get<TensorRefs>(name, "a list of tensors");
  std::vector<Value> values;
  if (tensors == nullptr) return values;
  for (const auto& tensor : *tensors)
    values.push_back(tensor ? Named(*tensor) : Fail("a tensor of the list is None"));
  return values;
}

std::vector<std::optional<Value>> AtenCall::OptionalTensors(std::string_view name) {
  const auto* tensors = Get<TensorRefs>(name, "a list of tensors");
  std::vector<std::optional<Value>> values;
  if (tensors == nullptr) return values;
  for (const auto& tensor : *tensors)
    values.push_back(tensor ? std::optional(Named(*tensor)) : std::nullopt);
  return values;
}

double AtenCall::Real(std::string_view name) {
  const Argument* argument = Find(name);
  if (argument != nullptr) {
    if (const auto* whole = std::get_if<int64_t>(argument)) return static_cast<double>(*whole);
    if (const auto* flag = std::get_if<bool>(argument)) return *flag ? 1 : 0;
  }
  const auto* real = Get<double>(name, "a number");
  return real == nullptr ? 0 : *real;
}

int64_t AtenCall::Whole(std::string_view name) {
  const Argument* argument = Find(name);
  if (argument != nullptr) {
    if (const auto* flag = std::get_if<bool>(argument)) return *flag ? 1 : 0;
  }
  const auto* whole = Get<int64_t>(name, "an integer");
  return whole == nullptr ? 0 : Bounded(*whole);
}

bool AtenCall::Flag(std::string_view name) {
  const auto* flag = Get<bool>(name, "true or false");
  return flag != nullptr && *flag;
}

std::string AtenCall::Text(std::string_view name) {
  const auto* text = Get<std::string>(name, "text");
  return text == nullptr ? "" : *text;
}

DType AtenCall::Type(std::string_view name) {
  const auto* type = Get<ScalarType>(name, "an element type");
  if (type != nullptr && !type->dtype) Fail("the element type is not supported");
  return type != nullptr && type->dtype ? *type->dtype : DType::kFloat32;
}

Integers AtenCall::Wholes(std::string_view name) {
  const Argument* argument = Find(name);
  if (argument != nullptr) {
    if (const auto* whole = std::get_if<int64_t>(argument)) return {Bounded(*whole)};
  }
  const auto* wholes = Get<Integers>(name, "a list of integers");
  Integers list = wholes == nullptr ? Integers() : *wholes;
  for (int64_t& each : list) each = Bounded(each);
  return list;
}

Integers AtenCall::PerAxis(std::string_view name, size_t n, int64_t fallback) {
  Integers list = Has(name) ? Wholes(name) : Integers();
  if (list.empty()) list = {fallback};
  if (list.size() == 1) list.resize(n, list[0]);
  if (!Check(list.size() == n,
             fmt::format("the argument '{}' has {} numbers for {} axes", name, list.size(), n)))
    list.resize(n, fallback);
  for (int64_t& each : list) {
    if (!Check(each >= -kLargestStep && each <= kLargestStep,
               fmt::format("the argument '{}' has the number {}", name, each)))
      each = fallback;
  }
  return list;
}

int64_t AtenCall::Axis(std::string_view name, Value x) {
  const auto rank = static_cast<int64_t>(g.TypeOf(x).rank());
  const int64_t axis = Whole(name);
  // A scalar has the axis 0 or -1, as in PyTorch.
  const int64_t most = std::max<int64_t>(rank, 1);
  if (!Check(axis >= -most && axis < most,
             fmt::format("the axis {} of a tensor of rank {}", axis, rank)))
    return 0;
  return axis < 0 ? axis + most : axis;
}

Integers AtenCall::Axes(std::string_view name, Value x) {
  const auto rank = static_cast<int64_t>(g.TypeOf(x).rank());
  Integers axes = Has(name) ? Wholes(name) : Integers();
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    if (!Check(axis >= -rank && axis < rank,
               fmt::format("the axis {} of a tensor of rank {}", axis, rank)))
      return {};
    axis = axis < 0 ? axis + rank : axis;
  }
  std::ranges::sort(axes);
  return axes;
}

const TensorMeta* AtenCall::Result() const {
  if (node_.outputs.empty() || !node_.outputs[0]) return nullptr;
  const auto at = program_.tensors.find(node_.outputs[0]->name);
  return at == program_.tensors.end() ? nullptr : &at->second;
}

DType AtenCall::ResultType(DType fallback) const {
  const TensorMeta* result = Result();
  return result != nullptr && result->type.dtype ? *result->type.dtype : fallback;
}

namespace {

/// 0 of bool, 1 of integers, 2 of floats.
int KindRank(DType dtype) {
  if (IsFloat(dtype)) return 2;
  return KindOf(dtype) == DTypeKind::kBool ? 0 : 1;
}

/// PyTorch's common type of two types. Two 16-bit floats that differ become float32.
DType Promoted(DType a, DType b) {
  if (a == b) return a;
  if (KindRank(a) != KindRank(b)) return KindRank(a) > KindRank(b) ? a : b;
  if (SizeOf(a) != SizeOf(b)) return SizeOf(a) > SizeOf(b) ? a : b;
  if (IsFloat(a)) return DType::kFloat32;
  switch (SizeOf(a)) {  // a signed and an unsigned integer of one width
    case 1:
      return DType::kInt16;
    case 2:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

}  // namespace

DType AtenCall::CommonType(const std::vector<std::string_view>& names) {
  std::array<std::optional<DType>, 3> found;  // of tensors, of scalar tensors, of numbers
  const auto add = [&](size_t priority, DType dtype) {
    auto& place = found.at(priority);
    place = place ? Promoted(*place, dtype) : dtype;
  };
  for (const std::string_view name : names) {
    const Argument* argument = Find(name);
    if (argument == nullptr) continue;
    if (std::holds_alternative<TensorRef>(*argument)) {
      const Value x = Tensor(name);
      add(ShapeOf(x).empty() ? 1 : 0, TypeOf(x));
    } else if (std::holds_alternative<double>(*argument)) {
      add(2, DType::kFloat32);
    } else if (std::holds_alternative<int64_t>(*argument)) {
      add(2, DType::kInt64);
    } else if (std::holds_alternative<bool>(*argument)) {
      add(2, DType::kBool);
    }
  }
  std::optional<DType> common;
  for (const auto& next : found) {
    if (next && (!common || KindRank(*next) > KindRank(*common))) common = next;
  }
  return common.value_or(DType::kFloat32);
}

Value AtenCall::Library(std::string_view name, DType dtype, const std::vector<Value>& operands,
                        const Attributes& attributes, size_t stated) {
  const std::vector<Value> results = LibraryResults(name, dtype, operands, attributes, stated);
  return results.empty() ? Value{} : results[0];
}

std::vector<Value> AtenCall::LibraryResults(std::string_view name, DType dtype,
                                            const std::vector<Value>& operands,
                                            const Attributes& attributes, size_t stated) {
  if (!g.ok()) return {};
  graph::Request request{dtype, {}, attributes};
  std::string key = fmt::format("{} {}", name, Name(dtype));
  for (size_t i = 0; i < std::min(stated, operands.size()); ++i) {
    request.shapes.push_back(SizesOf(operands[i]));
    key += fmt::format(" [{}]", fmt::join(request.shapes.back(), ","));
  }
  for (const auto& [attribute, value] : attributes)
    key += fmt::format(" {}={}", attribute, atunner::ToString(value));
  auto at = cache_.find(key);
  if (at == cache_.end()) {
    const auto found = graph::FindInLibrary(name);
    ATUNNER_CHECK(found.has_value());
    auto built = graph::Build(*found, request);
    if (!built) {
      g.Fail(built.error());
      return {};
    }
    at = cache_.emplace(std::move(key), *std::move(built)).first;
  }
  return Inline(g, at->second, operands);
}

std::vector<Value> Inline(graph::GraphBuilder& builder, const graph::ValidGraph& graph,
                          const std::vector<Value>& operands) {
  if (!builder.ok()) return {};
  ATUNNER_CHECK(graph.inputs().size() == operands.size());
  std::vector<Value> values(graph.nodes().size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const graph::NodeId input = graph.inputs()[i];
    values[static_cast<size_t>(input)] = builder.Cast(operands[i], graph.node(input).type.dtype);
  }
  for (size_t id = 0; id < values.size(); ++id) {
    const graph::Node& node = graph.nodes()[id];
    if (node.As<graph::Input>()) continue;
    std::vector<Value> inner;
    for (const graph::NodeId operand : node.operands)
      inner.push_back(values[static_cast<size_t>(operand)]);
    values[id] = builder.Copy(node, std::move(inner));
  }
  std::vector<Value> results;
  for (const graph::Output& output : graph.outputs())
    results.push_back(values[static_cast<size_t>(output.node)]);
  return results;
}

}  // namespace atunner::importers
