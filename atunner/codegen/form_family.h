// A family of graphs: those that have a certain form, which its template then schedules.
#pragma once

#include <memory>
#include <string_view>

#include "atunner/codegen/family.h"

namespace atunner {

/// A family of tasks that need no form: those that `matches` says.
class TaskFamily : public Family {
 public:
  using Matches = bool (*)(const KernelSpec& spec);
  using Binds = Result<std::unique_ptr<ScheduleTemplate>> (*)(const KernelSpec& spec, const DeviceProfile& profile);
  TaskFamily(std::string_view name, Matches matches, Binds bind) : name_(name), matches_(matches), bind_(bind) {}
  std::string_view name() const override { return name_; }
  bool Match(const KernelSpec& spec) const override { return matches_(spec); }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    return bind_(spec, profile);
  }

 private:
  std::string_view name_;
  Matches matches_;
  Binds bind_;
};

/// `FormOf(spec)` is an optional, a Result or the like: the form that Template{spec, profile, form} schedules.
template <class Template, auto FormOf>
class FormFamily : public TaskFamily {
 public:
  explicit FormFamily(std::string_view name)
      : TaskFamily(name, [](const KernelSpec& spec) { return FormOf(spec).has_value(); }, Make) {}

 private:
  static Result<std::unique_ptr<ScheduleTemplate>> Make(const KernelSpec& spec, const DeviceProfile& profile) {
    return std::make_unique<Template>(spec, profile, FormOf(spec).value());
  }
};

/// Is it a task of the operator of that name, and not of a graph?
inline bool IsOperator(const KernelSpec& spec, std::string_view name) {
  return spec.oracle.kind == Oracle::Kind::kOperator && spec.name == name;
}

}  // namespace atunner
