#include "atunner/intake/user_kernel.h"

#include <algorithm>
#include <cmath>

#include "atunner/model/space/permutation.h"
#include "atunner/search/space/space_index.h"

namespace atunner {
namespace {

/// Largest number of configurations that the search for the nearest valid one looks at.
constexpr uint64_t kMostLookedAt = 100'000;

std::string WithParameters(std::string entry, const ParameterSpace& space,
                           const Configuration& configuration) {
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const std::string place = "{" + space.parameters[i].name + "}";
    const std::string value = ToString(configuration.values[i]);
    for (size_t at = entry.find(place); at != std::string::npos;
         at = entry.find(place, at + value.size()))
      entry.replace(at, place.size(), value);
  }
  return entry;
}

/// Defines a parameter's macro. A permutation is defined as a list with commas, for initialisers
/// and template arguments, and item by item as NAME_0, NAME_1, … for the preprocessor.
void Define(const Parameter& parameter, const std::string& value, SourceUnit& source) {
  source.defines.emplace_back(parameter.name, value);
  if (parameter.items.empty()) return;
  const std::vector<std::string> items = ItemsOf(value);
  for (size_t i = 0; i < items.size(); ++i)
    source.defines.emplace_back(parameter.name + "_" + std::to_string(i), items[i]);
}

struct Replacement {
  size_t offset, length;
  std::string text;
};

/// From the back to the front, so that earlier offsets stay valid.
void ReplaceAll(std::vector<Replacement> replacements, std::string& text) {
  std::ranges::sort(replacements, std::ranges::greater{}, &Replacement::offset);
  for (const Replacement& one : replacements) text.replace(one.offset, one.length, one.text);
}

class UserTemplate : public ScheduleTemplate {
 public:
  explicit UserTemplate(UserKernel kernel) : kernel_(std::move(kernel)) {}

  const KernelSpec& spec() const override { return kernel_.spec; }
  const ParameterSpace& space() const override { return kernel_.space; }
  Configuration Default() const override { return kernel_.initial; }
  std::optional<RenderedKernel> Naive() const override { return Rendered(kernel_.initial); }
  std::vector<Dims> CheckDims(const Configuration&) const override { return kernel_.check_dims; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    return Rendered(configuration);
  }

  RenderedKernel Rendered(const Configuration& configuration) const {
    RenderedKernel rendered{kernel_.source, kernel_.plan};
    Inject(configuration, rendered.source);
    for (LaunchStep& step : rendered.plan.steps)
      step.entry = WithParameters(step.entry, kernel_.space, configuration);
    rendered.plan.parameter_names = kernel_.space.Names();
    rendered.plan.parameter_values = configuration.values;
    return rendered;
  }

  KernelSpec& mutable_spec() { return kernel_.spec; }

 private:
  void Inject(const Configuration& configuration, SourceUnit& source) const {
    std::vector<Replacement> replacements;
    for (size_t i = 0; i < kernel_.injections.size(); ++i) {
      const Injection& injection = kernel_.injections[i];
      const std::string value = ToString(configuration.values[i]);
      switch (injection.kind) {
        case Injection::Kind::kDefine:
          Define(kernel_.space.parameters[i], value, source);
          break;
        case Injection::Kind::kReplace:
          replacements.push_back({injection.offset, injection.length, value});
          break;
        case Injection::Kind::kUnroll:
          if (Truthy(configuration.values[i]))
            replacements.push_back({injection.offset, 0, "_Pragma(\"unroll " + value + "\") "});
          break;
        case Injection::Kind::kOption:
          if (Truthy(configuration.values[i])) source.options.push_back(injection.option + value);
          break;
        case Injection::Kind::kLaunch:
          break;
      }
    }
    ReplaceAll(std::move(replacements), source.text);
  }

  UserKernel kernel_;
};

int Differences(const Configuration& a, const Configuration& b) {
  int count = 0;
  for (size_t i = 0; i < a.values.size(); ++i) count += !LooselyEqual(a.values[i], b.values[i]);
  return count;
}

/// The initial configuration, or the valid one that differs from it in the fewest parameters.
Status MakeInitialValid(UserKernel& kernel) {
  kernel.initial = NearestListed(kernel.space, kernel.initial.values);
  ATUNNER_TRY(const bool allowed, kernel.space.Allows(kernel.initial, kernel.spec.dims));
  if (allowed) return {};
  ATUNNER_TRY(const SpaceIndex index, SpaceIndex::Build(kernel.space, kernel.spec.dims));
  const uint64_t step = std::max<uint64_t>(1, index.size() / kMostLookedAt);
  Configuration nearest = index.At(0);
  for (uint64_t i = 0; i < index.size(); i += step) {
    Configuration one = index.At(i);
    if (Differences(one, kernel.initial) < Differences(nearest, kernel.initial))
      nearest = std::move(one);
  }
  kernel.notes.push_back("the default values break a constraint; starting from " +
                         kernel.space.Describe(nearest));
  kernel.initial = std::move(nearest);
  return {};
}

/// kInvalidInput if two parameters define the same macro.
Status CheckMacros(const ParameterSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    for (size_t i = 0; i < parameter.items.size(); ++i) {
      const std::string macro = parameter.name + "_" + std::to_string(i);
      if (space.Find(macro) >= 0)
        return Invalid(
            "permutation '" + parameter.name + "' defines '" + macro + "', which is a parameter",
            "", "rename one of them");
    }
  }
  return {};
}

/// kInvalidInput if the kernel has no result that can be compared.
Status CheckResults(const UserKernel& kernel) {
  for (const LaunchStep& step : kernel.plan.steps) {
    if (std::ranges::any_of(
            step.args, [](const ArgBinding& a) { return a.kind == ArgBinding::Kind::kSurface; }))
      return Invalid("kernel '" + step.entry +
                         "' takes a surface, and what it writes there cannot be verified",
                     kernel.source.name, "atunner sanitize runs it");
  }
  const bool has_output = std::ranges::any_of(kernel.spec.args, [](const ArgSpec& arg) {
    return arg.role == Role::kOutput || arg.role == Role::kInOut;
  });
  if (has_output) return {};
  return Invalid("kernel '" + kernel.spec.name + "' has no output to verify", kernel.source.name,
                 "mark the argument that it writes as out or inout");
}

/// Names of the tensors whose addresses a launch passes.
std::vector<std::string> TensorsOf(const LaunchStep& step) {
  std::vector<std::string> names;
  for (const ArgBinding& arg : step.args) {
    if (arg.kind == ArgBinding::Kind::kTensor) names.push_back(arg.name);
    for (const ParameterBytes::Pointer& pointer : arg.raw.pointers) names.push_back(pointer.name);
  }
  return names;
}

Status CheckPlan(const UserKernel& kernel, const RenderedKernel& rendered) {
  for (const LaunchStep& step : kernel.plan.steps) {
    for (const std::string& name : TensorsOf(step)) {
      if (kernel.spec.FindArg(name) != nullptr) continue;
      return Invalid("kernel '" + step.entry + "' is given the unknown argument '" + name + "'",
                     kernel.source.name);
    }
  }
  for (const ArgSpec& arg : kernel.spec.args) {
    if (arg.role != Role::kScalar)
      ATUNNER_RETURN_IF_ERROR(ShapeOf(arg, kernel.spec, kernel.spec.dims));
  }
  ATUNNER_RETURN_IF_ERROR(Resolve(rendered.plan, kernel.spec.dims, kernel.spec.attributes));
  for (const Dims& dims : kernel.check_dims) {
    ATUNNER_RETURN_IF_ERROR(Resolve(rendered.plan, dims, kernel.spec.attributes));
  }
  return {};
}

}  // namespace

Configuration NearestListed(const ParameterSpace& space, const std::vector<Value>& wanted) {
  Configuration nearest;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const std::vector<Value>& values = space.parameters[i].values;
    const auto distance = [&](const Value& value) {
      if (LooselyEqual(value, wanted[i])) return -1.0;
      const double gap = std::abs(ToDouble(value) - ToDouble(wanted[i]));
      return std::isnan(gap) ? 1e300 : gap;
    };
    nearest.values.push_back(*std::ranges::min_element(values, {}, distance));
  }
  return nearest;
}

Result<std::unique_ptr<ScheduleTemplate>> MakeUserTemplate(UserKernel& kernel, bool verified) {
  ATUNNER_CHECK(kernel.injections.size() == kernel.space.parameters.size());
  ATUNNER_CHECK(kernel.initial.values.size() == kernel.space.parameters.size());
  ATUNNER_RETURN_IF_ERROR(kernel.space.Validate(kernel.spec.dims));
  ATUNNER_RETURN_IF_ERROR(CheckMacros(kernel.space));
  ATUNNER_RETURN_IF_ERROR(MakeInitialValid(kernel));
  auto made = std::make_unique<UserTemplate>(kernel);
  const RenderedKernel as_given = made->Rendered(kernel.initial);
  if (verified) ATUNNER_RETURN_IF_ERROR(CheckResults(kernel));
  ATUNNER_RETURN_IF_ERROR(CheckPlan(kernel, as_given));
  Oracle oracle;
  oracle.kind = Oracle::Kind::kKernel;
  oracle.kernel = kernel.reference ? *kernel.reference : as_given;
  kernel.spec.oracle = oracle;
  made->mutable_spec().oracle = std::move(oracle);
  return made;
}

}  // namespace atunner
