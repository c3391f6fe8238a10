#include "atunner/operators/operator.h"

#include <algorithm>

#include "atunner/base/closest_name.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/joint_operator.h"
#include "atunner/operators/operator_list.h"

namespace atunner {
namespace {

std::string Normalised(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace

std::unexpected<Error> Operator::WrongShape(const std::string& what) const {
  return Invalid(what, "--input-shape of " + info().name, "give " + info().shape_help);
}

bool Operator::Serves(DType dtype) const {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

Result<KernelSpec> Operator::Instantiate(const OperatorRequest& request) const {
  if (!Serves(request.dtype)) {
    return Invalid("dtype " + std::string(Name(request.dtype)) + " is not served by " + info().name, "--dtype",
                   "use float32, float16 or bfloat16");
  }
  for (const auto& shape : request.shapes) {
    for (int64_t extent : shape) {
      if (extent < 1) return WrongShape("dimension " + std::to_string(extent) + " must be at least 1");
    }
  }
  KernelSpec spec;
  spec.name = info().name;
  spec.oracle.operator_name = info().name;
  spec.compute_dtype = request.dtype;
  for (const AttributeInfo& attribute : info().attributes) spec.attributes[attribute.name] = attribute.fallback;
  for (const auto& [name, value] : request.attributes) {
    const auto known = spec.attributes.find(name);
    if (known == spec.attributes.end()) {
      std::vector<std::string> names;
      for (const AttributeInfo& attribute : info().attributes) names.push_back(attribute.name);
      const std::string near = ClosestName(name, names);
      return Invalid("unknown attribute '" + name + "'", "--attr of " + info().name,
                     near.empty() ? "it has none like that" : "did you mean '" + near + "'?");
    }
    known->second = value;
  }
  ATUNNER_RETURN_IF_ERROR(Describe(request, spec));
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kScalar) continue;
    if (auto shape = ShapeOf(arg, spec, spec.dims); !shape) return std::unexpected(shape.error());
  }
  return spec;
}

const Operator* FindOperator(std::string_view name) {
  const std::string wanted = Normalised(name);
  const Operator* joint = FindJointOperator(wanted);
  return joint != nullptr ? joint : FindGraphOperator(wanted);
}

const Operator* OracleOf(const KernelSpec& spec) {
  if (spec.oracle.kind == Oracle::Kind::kGraph) return &GraphOracle();
  return spec.oracle.kind == Oracle::Kind::kOperator ? FindOperator(spec.oracle.operator_name) : nullptr;
}

std::vector<const Operator*> AllOperators() {
  std::vector<const Operator*> all;
  for (const Operator* each : OperatorList()) all.push_back(FindJointOperator(each->info().name));
  for (const Operator* each : GraphOperators()) {
    if (FindOperator(each->info().name) == each) all.push_back(each);
  }
  return all;
}

}  // namespace atunner
