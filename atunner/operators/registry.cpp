// The registry of operators: classes, joined with the library's graphs of the same meaning, and the
// rest of the library.
#include "atunner/base/closest_name.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/joint_operator.h"
#include "atunner/operators/operator.h"
#include "atunner/operators/operator_list.h"

namespace atunner {

const Operator* FindOperator(std::string_view name) {
  const std::string wanted = WithUnderscores(name);
  const Operator* joint = FindJointOperator(wanted);
  return joint != nullptr ? joint : FindGraphOperator(wanted);
}

const Operator* OracleOf(const KernelSpec& spec) {
  if (spec.oracle.kind == Oracle::Kind::kGraph) return &GraphOracle();
  return spec.oracle.kind == Oracle::Kind::kOperator ? FindOperator(spec.oracle.operator_name)
                                                     : nullptr;
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
