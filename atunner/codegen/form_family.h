// A family of graphs: those that have a certain form, which its template then schedules.
#pragma once

#include <memory>
#include <string_view>

#include "atunner/codegen/family.h"

namespace atunner {

/// `FormOf(spec)` is an optional, a Result or the like.
template <auto FormOf>
bool HasForm(const KernelSpec& spec) {
  return FormOf(spec).has_value();
}
/// Of tasks with a form, which Template{spec, profile, form} schedules.
template <class Template, auto FormOf>
Result<std::unique_ptr<ScheduleTemplate>> BindForm(const KernelSpec& spec, const DeviceProfile& profile) {
  return std::make_unique<Template>(spec, profile, FormOf(spec).value());
}
template <class Template, auto FormOf>
constexpr Family FormFamily(std::string_view name) {
  return {name, HasForm<FormOf>, BindForm<Template, FormOf>};
}

/// Is it a task of the operator of that name, and not of a graph?
inline bool IsOperator(const KernelSpec& spec, std::string_view name) {
  return spec.oracle.kind == Oracle::Kind::kOperator && spec.name == name;
}

}  // namespace atunner
