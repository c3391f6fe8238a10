#include "atunner/model/candidate/renamed_parameters.h"

#include <algorithm>
#include <array>

#include "atunner/model/kernel/substitution.h"

namespace atunner {
namespace {

// {"before", "now"}; schema 1 stores and artifacts have the names before.
constexpr std::array<RenamedParameter, 0> kRenamed = {};

}  // namespace

std::span<const RenamedParameter> RenamedParameters() { return kRenamed; }

std::string CurrentName(const std::string& name, std::span<const RenamedParameter> renamed) {
  const auto entry = std::ranges::find(renamed, name, &RenamedParameter::before);
  return entry == renamed.end() ? name : std::string(entry->now);
}

bool UseCurrentNames(ParameterSpace& space, std::span<const RenamedParameter> renamed) {
  Meanings meanings;
  for (Parameter& parameter : space.parameters) {
    const std::string now = CurrentName(parameter.name, renamed);
    if (now == parameter.name || space.Find(now) >= 0) continue;
    meanings[parameter.name] = now;
    parameter.name = now;
  }
  if (meanings.empty()) return false;
  // An expression that cannot be written with the new names stays as it is.
  for (Constraint& constraint : space.constraints) (void)Substitute(constraint.condition, meanings);
  for (Parameter& parameter : space.parameters) {
    if (parameter.only_if) (void)Substitute(*parameter.only_if, meanings);
  }
  return true;
}

}  // namespace atunner
