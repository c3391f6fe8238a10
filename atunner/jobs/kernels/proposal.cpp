#include "atunner/jobs/kernels/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "atunner/base/closest_name.h"

namespace atunner::jobs {
namespace {

constexpr size_t kDigestLetters = 12;

Parameter Mark(const RenderedKernel& kernel) {
  const std::string digest = kernel.ContentDigest().ToHex().substr(0, kDigestLetters);
  return {kProposalParameter, {Value(digest)}, "the digest of the proposed source", {}, {}, {}};
}

/// Task, baseline and the mark are the same for both kinds of proposals.
class ProposedSchedule : public ScheduleTemplate {
 public:
  ProposedSchedule(const ScheduleTemplate& problem, ParameterSpace space)
      : spec_(problem.spec()), naive_(problem.Naive()), space_(std::move(space)) {}
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  std::optional<RenderedKernel> Naive() const override { return naive_; }

 protected:
  /// The configuration without the mark, which comes last.
  static Configuration Own(const Configuration& configuration) {
    Configuration own = configuration;
    own.values.pop_back();
    return own;
  }
  Configuration Marked(Configuration own) const {
    own.values.push_back(space_.parameters.back().values.front());
    return own;
  }

 private:
  KernelSpec spec_;
  std::optional<RenderedKernel> naive_;
  ParameterSpace space_;
};

ParameterSpace WithMark(ParameterSpace space, const RenderedKernel& kernel) {
  space.parameters.push_back(Mark(kernel));
  return space;
}

/// Source and launches with macros for parameters.
class SourceSchedule : public ProposedSchedule {
 public:
  SourceSchedule(const ScheduleTemplate& problem, Proposal proposal)
      : ProposedSchedule(problem, WithMark(proposal.space, proposal.kernel)),
        kernel_(std::move(proposal.kernel)) {}

  Configuration Default() const override {
    Configuration first;
    for (const Parameter& parameter : space().parameters)
      first.values.push_back(parameter.values.front());
    return first;
  }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    RenderedKernel rendered = kernel_;
    const Configuration own = Own(configuration);
    for (size_t i = 0; i < own.values.size(); ++i) {
      rendered.plan.parameter_names.push_back(space().parameters[i].name);
      rendered.plan.parameter_values.push_back(own.values[i]);
      rendered.source.defines.emplace_back(space().parameters[i].name, ToString(own.values[i]));
    }
    return rendered;
  }

 private:
  RenderedKernel kernel_;
};

/// An edited copy of the user's file.
class EditedSchedule : public ProposedSchedule {
 public:
  EditedSchedule(const ScheduleTemplate& problem, std::unique_ptr<ScheduleTemplate> edited,
                 const RenderedKernel& first)
      : ProposedSchedule(problem, WithMark(edited->space(), first)), edited_(std::move(edited)) {}
  Configuration Default() const override { return Marked(edited_->Default()); }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    return edited_->Render(Own(configuration));
  }

 private:
  std::unique_ptr<ScheduleTemplate> edited_;
};

std::unexpected<Error> UnknownArgument(const std::string& name, const std::string& entry,
                                       const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const ArgSpec& arg : spec.args) names.push_back(arg.name);
  return Invalid("'" + name + "' is no argument of the problem",
                 "request.launch of '" + entry + "'", DidYouMean(name, names));
}

/// Tensors must be the task's, workspaces the plan's.
Status CheckNames(const LaunchPlan& plan, const KernelSpec& spec) {
  for (const LaunchStep& step : plan.steps) {
    for (const ArgBinding& arg : step.args) {
      if (arg.kind == ArgBinding::Kind::kTensor && spec.FindArg(arg.name) == nullptr)
        return UnknownArgument(arg.name, step.entry, spec);
    }
  }
  return {};
}

bool HasOutput(const LaunchPlan& plan, const KernelSpec& spec) {
  return std::ranges::any_of(plan.steps, [&](const LaunchStep& step) {
    return std::ranges::any_of(step.args, [&](const ArgBinding& arg) {
      const ArgSpec* found = spec.FindArg(arg.name);
      return found != nullptr && found->role != Role::kInput && found->role != Role::kScalar;
    });
  });
}

/// The default must be a valid configuration that can be launched.
Status CheckDefault(const ScheduleTemplate& schedule) {
  const KernelSpec& spec = schedule.spec();
  ATUNNER_RETURN_IF_ERROR(schedule.space().Validate(spec.dims));
  const Configuration first = schedule.Default();
  ATUNNER_TRY(const bool allowed, schedule.space().Allows(first, spec.dims));
  if (!allowed)
    return Invalid("the first value of each parameter breaks a constraint", "request.parameters",
                   "list a valid combination first");
  ATUNNER_TRY(const RenderedKernel rendered, schedule.Render(first));
  ATUNNER_RETURN_IF_ERROR(CheckNames(rendered.plan, spec));
  if (!HasOutput(rendered.plan, spec))
    return Invalid("no launch is given an output of the problem", "request.launch");
  ATUNNER_RETURN_IF_ERROR(Resolve(rendered.plan, spec.dims, spec.attributes));
  return {};
}

/// The difference of two tasks that a proposal may not make; "" for none.
std::string DifferenceOf(const KernelSpec& task, const KernelSpec& edited) {
  if (task.dims != edited.dims)
    return fmt::format("its sizes are {}, the problem's {}", ToString(edited.dims),
                       ToString(task.dims));
  for (const ArgSpec& arg : task.args) {
    const ArgSpec* other = edited.FindArg(arg.name);
    if (other == nullptr) return "it has no argument '" + arg.name + "'";
    if (other->dtype != arg.dtype || other->role != arg.role)
      return fmt::format("its argument '{}' is {} {}, the problem's {} {}", arg.name,
                         Name(other->role), Name(other->dtype), Name(arg.role), Name(arg.dtype));
  }
  return "";
}

Status SetParameter(const ParameterSpace& space, const std::string& setting,
                    Configuration& configuration) {
  const size_t equals = setting.find('=');
  const std::string name = setting.substr(0, equals);
  const int at = space.Find(name);
  if (at < 0 || equals == std::string::npos) {
    const std::string near = ClosestName(name, space.Names());
    return Invalid(
        "'" + setting + "' sets no parameter of this kernel", "request.configuration",
        near.empty() ? "write name=value, with commas between" : "did you mean '" + near + "'?");
  }
  const std::vector<Value>& values = space.parameters[static_cast<size_t>(at)].values;
  const auto value = std::ranges::find_if(
      values, [&](const Value& v) { return ToString(v) == setting.substr(equals + 1); });
  if (value == values.end()) {
    std::string listed;
    for (const Value& v : values) listed += (listed.empty() ? "" : ", ") + ToString(v);
    return Invalid("'" + setting.substr(equals + 1) + "' is no value of '" + name + "'",
                   "request.configuration", "use " + listed);
  }
  configuration.values[static_cast<size_t>(at)] = *value;
  return {};
}

}  // namespace

Result<std::unique_ptr<ScheduleTemplate>> MakeProposedSchedule(const ScheduleTemplate& problem,
                                                               Proposal proposal) {
  if (proposal.space.Find(kProposalParameter) >= 0)
    return Invalid("'proposal' is not free as the name of a parameter", "request.parameters");
  auto schedule = std::make_unique<SourceSchedule>(problem, std::move(proposal));
  ATUNNER_RETURN_IF_ERROR(CheckDefault(*schedule));
  return schedule;
}

Result<std::unique_ptr<ScheduleTemplate>> MakeProposedSchedule(
    const ScheduleTemplate& problem, std::unique_ptr<ScheduleTemplate> edited) {
  if (const std::string difference = DifferenceOf(problem.spec(), edited->spec());
      !difference.empty())
    return Invalid("the source is another problem: " + difference, "request.source",
                   "keep sizes and arguments as they are");
  ATUNNER_TRY(const RenderedKernel first, edited->Render(edited->Default()));
  auto schedule = std::make_unique<EditedSchedule>(problem, std::move(edited), first);
  ATUNNER_RETURN_IF_ERROR(CheckDefault(*schedule));
  return schedule;
}

Result<Configuration> ConfigurationOf(const ScheduleTemplate& schedule, const std::string& text) {
  Configuration configuration = schedule.Default();
  std::istringstream settings(text);
  for (std::string setting; std::getline(settings, setting, ',');)
    ATUNNER_RETURN_IF_ERROR(SetParameter(schedule.space(), setting, configuration));
  ATUNNER_TRY(const bool allowed, schedule.space().Allows(configuration, schedule.spec().dims));
  if (!allowed)
    return Invalid("the constraints rule this configuration out", "request.configuration " + text);
  return configuration;
}

}  // namespace atunner::jobs
