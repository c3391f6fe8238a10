#include "atunner/model/kernel/substitution.h"

#include <fmt/format.h>

#include <regex>

namespace atunner {
namespace {

Status SubstituteAll(ArgBinding& arg, const Meanings& meanings) {
  ATUNNER_RETURN_IF_ERROR(Substitute(arg.value, meanings));
  for (auto* extents : {&arg.view.dims, &arg.view.strides, &arg.view.box}) {
    for (Expr& size : *extents) ATUNNER_RETURN_IF_ERROR(Substitute(size, meanings));
  }
  return Substitute(arg.view.swizzle_bytes, meanings);
}

}  // namespace

Status Substitute(Expr& expression, const Meanings& meanings) {
  static const std::regex word(R"('[^']*'|\b[A-Za-z_]\w*)");
  const std::string& text = expression.text();
  std::string replaced;
  auto from = text.cbegin();
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
    const auto found = meanings.find(at->str());
    replaced.append(from, (*at)[0].first)
        .append(found == meanings.end() ? at->str() : found->second);
    from = (*at)[0].second;
  }
  ATUNNER_TRY(expression, Expr::Parse(replaced.append(from, text.cend())));
  if (!expression.Names().empty()) return {};
  ATUNNER_TRY(const Value value, expression.Evaluate({}));
  const auto* real = std::get_if<double>(&value);
  expression = Expr::MustParse(real ? fmt::format("{:.17g}", *real) : ToString(value));
  return {};
}

Status Substitute(LaunchPlan& plan, const Meanings& meanings) {
  Meanings known = meanings;
  for (size_t i = 0; i < plan.parameter_names.size(); ++i) {
    const Value& value = plan.parameter_values[i];
    known[plan.parameter_names[i]] = std::holds_alternative<std::string>(value)
                                         ? "'" + ToString(value) + "'"
                                         : ToString(value);
  }
  plan.parameter_names.clear();
  plan.parameter_values.clear();
  for (Workspace& workspace : plan.workspaces)
    ATUNNER_RETURN_IF_ERROR(Substitute(workspace.bytes, known));
  for (LaunchStep& step : plan.steps) {
    for (auto* extents : {&step.grid, &step.block, &step.cluster}) {
      for (Expr& size : *extents) ATUNNER_RETURN_IF_ERROR(Substitute(size, known));
    }
    ATUNNER_RETURN_IF_ERROR(Substitute(step.shared_bytes, known));
    for (ArgBinding& arg : step.args) ATUNNER_RETURN_IF_ERROR(SubstituteAll(arg, known));
  }
  return {};
}

}  // namespace atunner
