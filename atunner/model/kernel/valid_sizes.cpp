#include "atunner/model/kernel/valid_sizes.h"

#include <algorithm>

namespace atunner {
namespace {

std::string NamesOf(const Dims& dims) {
  std::string text;
  for (const auto& [name, extent] : dims) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Status Serves(const ValidSizes& valid, const Dims& tuned, const Dims& wanted,
              const Attributes& attributes) {
  for (const auto& [name, extent] : wanted) {
    if (!tuned.contains(name))
      return Invalid("there is no dim '" + name + "'", "", "the dims are " + NamesOf(tuned));
    if (extent < 1)
      return Invalid("dim '" + name + "' is " + std::to_string(extent), "",
                     "it must be at least 1");
  }
  for (const auto& [name, extent] : tuned) {
    const auto at = wanted.find(name);
    if (at == wanted.end())
      return Invalid("dim '" + name + "' is not given", "", "the dims are " + NamesOf(tuned));
    if (at->second != extent && std::ranges::find(valid.dims, name) == valid.dims.end()) {
      return Invalid("the kernel is made for " + name + " = " + std::to_string(extent) + ", not " +
                     std::to_string(at->second));
    }
  }
  for (const Constraint& constraint : valid.constraints) {
    ATUNNER_TRY(const bool holds,
                constraint.condition.EvaluateBool(Bindings(wanted).Add(attributes)));
    if (holds) continue;
    return Invalid("the kernel needs " + constraint.condition.text() +
                   (constraint.reason.empty() ? "" : " (" + constraint.reason + ")"));
  }
  return {};
}

}  // namespace atunner
