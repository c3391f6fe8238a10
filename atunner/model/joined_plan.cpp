#include "atunner/model/joined_plan.h"

#include <fmt/format.h>

#include <utility>

namespace atunner {
namespace {

Status Fix(Expr& size, const Bindings& known) {
  ATUNNER_TRY(const Value value, size.Evaluate(known));
  const auto* real = std::get_if<double>(&value);
  size = Expr::MustParse(real ? fmt::format("{:.17g}", *real) : ToString(value));
  return {};
}

Status Fix(ArgBinding& arg, const Bindings& known) {
  ATUNNER_RETURN_IF_ERROR(Fix(arg.value, known));
  for (auto* sizes : {&arg.view.dims, &arg.view.strides, &arg.view.box}) {
    for (Expr& size : *sizes) ATUNNER_RETURN_IF_ERROR(Fix(size, known));
  }
  return Fix(arg.view.swizzle_bytes, known);
}

/// What the plan calls by a name of its own, or takes for an argument, as the whole calls it.
void Rename(ArgBinding& arg, const JoinedAs& as) {
  using Kind = ArgBinding::Kind;
  if (InWorkspace(arg.kind)) {
    arg.name = as.prefix + arg.name;
  } else if (arg.kind != Kind::kScalar) {
    arg.name = as.names.at(arg.name);
    if (as.whole.FindArg(arg.name) == nullptr) arg.kind = IsMap(arg.kind) ? Kind::kWorkspaceMap : Kind::kWorkspace;
  }
}

}  // namespace

Status JoinPlan(LaunchPlan plan, const JoinedAs& as, LaunchPlan& whole) {
  Bindings known(as.dims);
  known.Add(plan.parameter_names, plan.parameter_values);
  for (Workspace& workspace : plan.workspaces) {
    ATUNNER_RETURN_IF_ERROR(Fix(workspace.bytes, known));
    whole.workspaces.push_back({as.prefix + workspace.name, workspace.bytes});
  }
  for (LaunchStep& step : plan.steps) {
    for (auto* sizes : {&step.grid, &step.block, &step.cluster}) {
      for (Expr& size : *sizes) ATUNNER_RETURN_IF_ERROR(Fix(size, known));
    }
    ATUNNER_RETURN_IF_ERROR(Fix(step.shared_bytes, known));
    for (ArgBinding& arg : step.args) {
      ATUNNER_RETURN_IF_ERROR(Fix(arg, known));
      Rename(arg, as);
    }
    step.entry = as.prefix + step.entry;
    whole.steps.push_back(std::move(step));
  }
  return {};
}

}  // namespace atunner
