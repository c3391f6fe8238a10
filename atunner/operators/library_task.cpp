#include "atunner/operators/library_task.h"

#include <string>

#include "atunner/operators/operator.h"

namespace atunner {

std::vector<int64_t> ExtentsOf(const KernelSpec& spec, std::string_view argument) {
  const ArgSpec* arg = spec.FindArg(argument);
  if (arg == nullptr) return {};
  const auto shape = ShapeOf(*arg, spec, spec.dims);
  return shape ? shape->extents : std::vector<int64_t>{};
}

double SettingOr(const KernelSpec& spec, std::string_view name, double fallback) {
  const auto found = spec.attributes.find(std::string(name));
  const double value = found == spec.attributes.end() ? 0 : ToDouble(found->second);
  return value == 0 ? fallback : value;
}

bool IsLibraryTask(const KernelSpec& spec, std::string_view name,
                   std::vector<std::vector<int64_t>> shapes) {
  if (spec.oracle.kind != Oracle::Kind::kGraph || spec.name != name) return false;
  const Operator* op = FindOperator(name);
  OperatorRequest request{std::move(shapes), spec.compute_dtype, {}};
  for (const AttributeInfo& attribute : op->info().attributes) {
    const auto given = spec.attributes.find(attribute.name);
    if (given != spec.attributes.end()) request.attributes.insert(*given);
  }
  const auto made = op->Instantiate(request);
  return made && made->oracle.graph == spec.oracle.graph && made->dims == spec.dims;
}

}  // namespace atunner
