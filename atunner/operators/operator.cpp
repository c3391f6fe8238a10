#include "atunner/operators/operator.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "atunner/base/closest_name.h"

namespace atunner {

std::unexpected<Error> Operator::WrongShape(const std::string& what) const {
  return Invalid(what, "request.shapes of " + info().name, "give " + info().shape_help);
}

namespace {

/// The value if it has the kind of its fallback: bool, whole number, number or text.
Result<Value> OfKind(const AttributeInfo& attribute, const Value& given) {
  if (std::holds_alternative<std::string>(attribute.fallback)) return given;
  const bool real = std::holds_alternative<double>(attribute.fallback);
  if (real && (ToString(given) == "inf" || ToString(given) == "-inf"))  // infinity may come as text
    return Value(ToString(given) == "inf" ? INFINITY : -INFINITY);
  const bool number = !std::holds_alternative<std::string>(given);
  const double value = ToDouble(given);
  const char* kind = nullptr;
  if (std::holds_alternative<bool>(attribute.fallback)) {
    if (!number || (value != 0 && value != 1)) kind = "neither true nor false";
  } else if (std::holds_alternative<int64_t>(attribute.fallback)) {
    const bool every_axis = attribute.name == "axis" && ToString(given) == "all";
    if (!every_axis && (!number || value != std::trunc(value))) kind = "no whole number";
  } else if (!number) {
    kind = "no number";
  }
  if (kind == nullptr) return given;
  return Invalid("'" + ToString(given) + "' is " + kind, "request.attributes." + attribute.name,
                 attribute.meaning);
}

}  // namespace

bool Operator::Serves(DType dtype) const {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

Result<KernelSpec> Operator::Instantiate(const OperatorRequest& request) const {
  if (!Serves(request.dtype)) {
    return Invalid("dtype " + std::string(Name(request.dtype)) + " is not served by " + info().name,
                   "request.dtype", "use float32, float16 or bfloat16");
  }
  for (int64_t extent : std::views::join(request.shapes)) {
    if (extent < 1)
      return WrongShape("dimension " + std::to_string(extent) + " must be at least 1");
  }
  KernelSpec spec;
  spec.name = info().name;
  spec.oracle.operator_name = info().name;
  spec.compute_dtype = request.dtype;
  ATUNNER_TRY(spec.attributes, CompleteAttributes(request.attributes));
  ATUNNER_RETURN_IF_ERROR(Describe(request, spec));
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kScalar) continue;
    if (auto shape = ShapeOf(arg, spec, spec.dims); !shape) return std::unexpected(shape.error());
  }
  return spec;
}

Result<Attributes> Operator::CompleteAttributes(const Attributes& given) const {
  Attributes attributes;
  for (const AttributeInfo& attribute : info().attributes)
    attributes[attribute.name] = attribute.fallback;
  for (const auto& [name, value] : given) {
    const auto known = attributes.find(name);
    if (known == attributes.end()) {
      std::vector<std::string> names;
      for (const AttributeInfo& attribute : info().attributes) names.push_back(attribute.name);
      return Invalid("unknown attribute '" + name + "'", "request.attributes of " + info().name,
                     DidYouMean(name, names));
    }
    ATUNNER_TRY(known->second,
                OfKind(*std::ranges::find(info().attributes, name, &AttributeInfo::name), value));
  }
  ATUNNER_RETURN_IF_ERROR(CheckValues(attributes));
  return attributes;
}

}  // namespace atunner
