// A family of graphs: those that have a certain form, which its template then schedules.
#pragma once

#include <memory>

#include "atunner/codegen/family.h"

namespace atunner {

/// `FormOf(spec)` is an optional, a Result or the like: the form that Template{spec, profile, form} schedules.
template <class Template, auto FormOf>
class FormFamily : public Family {
 public:
  explicit FormFamily(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  bool Match(const KernelSpec& spec) const override { return FormOf(spec).has_value(); }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    return std::make_unique<Template>(spec, profile, FormOf(spec).value());
  }

 private:
  std::string_view name_;
};

}  // namespace atunner
