// manifest.json: its text, and every check that a manifest must pass before anything is launched by
// it.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "atunner/model/artifact/artifact.h"
#include "atunner/model/candidate/renamed_parameters.h"
#include "atunner/model/json/json.h"
#include "atunner/model/json/json_values.h"

namespace atunner {
namespace {

constexpr std::string_view kFormatPrefix = "atunner-artifact-";

Json JsonOf(const ValidSizes& valid) {
  Json constraints = Json::array();
  for (const Constraint& constraint : valid.constraints)
    constraints.push_back(
        {{"condition", constraint.condition.text()}, {"reason", constraint.reason}});
  return {{"dims", valid.dims}, {"constraints", constraints}};
}

ValidSizes ValidSizesFrom(const Json& json) {
  ValidSizes valid{json.at("dims").get<std::vector<std::string>>(), {}};
  for (const Json& each : json.at("constraints")) {
    auto condition = Expr::Parse(each.at("condition").get<std::string>());
    if (!condition) throw std::runtime_error(condition.error().ToString());
    valid.constraints.push_back({*std::move(condition), each.value("reason", "")});
  }
  return valid;
}

Json JsonOf(const std::vector<std::pair<std::string, Value>>& configuration) {
  Json json = Json::object();
  for (const auto& each : configuration) json[each.first] = JsonOfValue(each.second);
  return json;
}

/// A noun that has a reader of its own.
template <class T>
T Nested(const Json& json, const char* field) {
  auto value = FromJson<T>(json.at(field));
  if (!value) throw std::runtime_error(std::string(field) + ": " + value.error().what);
  return *std::move(value);
}

template <class T>
std::vector<T> NestedList(const Json& json, const char* field) {
  std::vector<T> list;
  for (const Json& each : json.at(field)) {
    auto value = FromJson<T>(each);
    if (!value) throw std::runtime_error(std::string(field) + ": " + value.error().what);
    list.push_back(*std::move(value));
  }
  return list;
}

/// "sm_90a" → 9, 0.
void CapabilityFromArch(Artifact& artifact) {
  int number = 0;
  const size_t digits = artifact.arch.find_first_of("0123456789");
  if (digits != std::string::npos)
    std::from_chars(&artifact.arch[digits], &*artifact.arch.end(), number);
  artifact.cc_major = number / 10;
  artifact.cc_minor = number % 10;
}

Evidence EvidenceFrom(const std::string& name) {
  if (name == "measured") return Evidence::kMeasured;
  if (name == "predicted") return Evidence::kPredicted;
  throw std::runtime_error("evidence is '" + name + "', not measured or predicted");
}

void ReadOrigin(const Json& json, Artifact& artifact) {
  artifact.arch = json.at("arch").get<std::string>();
  artifact.compiler = json.value("compiler", "");
  artifact.device = json.at("device").get<std::string>();
  artifact.created = json.value("created", "");
  artifact.atunner_version = json.value("atunner", "");
  artifact.run = json.value("run", "");
  artifact.evidence = EvidenceFrom(json.at("evidence").get<std::string>());
  if (!json.contains("compute_capability")) return CapabilityFromArch(artifact);
  artifact.cc_major = json.at("compute_capability").at(0).get<int>();
  artifact.cc_minor = json.at("compute_capability").at(1).get<int>();
}

Artifact Read(const Json& json) {
  Artifact artifact;
  artifact.spec = Nested<KernelSpec>(json, "spec");
  artifact.plan = Nested<LaunchPlan>(json, "plan");
  artifact.trial = Nested<Trial>(json, "trial");
  artifact.resources = NestedList<KernelResources>(json, "resources");
  artifact.name = json.value("name", artifact.spec.name);
  ReadOrigin(json, artifact);
  if (json.contains("baselines")) artifact.baselines = NestedList<Baseline>(json, "baselines");
  if (json.contains("free_sizes")) artifact.valid_sizes = ValidSizesFrom(json.at("free_sizes"));
  if (json.contains("configuration")) {
    for (const auto& [name, value] : json.at("configuration").items())
      artifact.configuration.emplace_back(CurrentName(name), ValueFrom(value));
  }
  for (const auto& [file, digest] : json.at("digests").items())
    artifact.digests[file] = DigestFrom(digest.get<std::string>());
  return artifact;
}

Status CheckTensorName(const Artifact& artifact, const std::string& name) {
  const ArgSpec* spec = artifact.spec.FindArg(name);
  if (spec == nullptr || spec->role == Role::kScalar)
    return Invalid("the plan passes '" + name + "', which is no tensor of the task");
  return {};
}

Status CheckStep(const Artifact& artifact, const LaunchStep& step) {
  const auto& resources = artifact.resources;
  if (std::ranges::find(resources, step.entry, &KernelResources::entry) == resources.end())
    return Invalid("the plan launches '" + step.entry + "', which resources does not list");
  for (const ArgBinding& arg : step.args) {
    if (arg.kind == ArgBinding::Kind::kTensor || arg.kind == ArgBinding::Kind::kTensorMap)
      ATUNNER_RETURN_IF_ERROR(CheckTensorName(artifact, arg.name));
    for (const ParameterBytes::Pointer& pointer : arg.raw.pointers)
      ATUNNER_RETURN_IF_ERROR(CheckTensorName(artifact, pointer.name));
    if (InWorkspace(arg.kind) &&
        std::ranges::find(artifact.plan.workspaces, arg.name, &Workspace::name) ==
            artifact.plan.workspaces.end())
      return Invalid("the plan passes the workspace '" + arg.name + "', which it does not declare");
  }
  return {};
}

Status CheckPlan(const Artifact& artifact) {
  const LaunchPlan& plan = artifact.plan;
  if (plan.parameter_names.size() != plan.parameter_values.size())
    return Invalid("the plan has " + std::to_string(plan.parameter_names.size()) +
                   " parameter names and " + std::to_string(plan.parameter_values.size()) +
                   " values");
  for (const LaunchStep& step : plan.steps) ATUNNER_RETURN_IF_ERROR(CheckStep(artifact, step));
  for (const SymbolCopy& copy : plan.symbols) {
    const ArgSpec* spec = artifact.spec.FindArg(copy.tensor);
    if (spec == nullptr || spec->role == Role::kScalar)
      return Invalid("the symbol '" + copy.symbol + "' copies '" + copy.tensor +
                     "', which is no tensor of the task");
  }
  ATUNNER_TRY([[maybe_unused]] const ConcretePlan concrete,
              Resolve(plan, artifact.spec.dims, artifact.spec.attributes));
  return {};
}

Status CheckEvidence(const Artifact& artifact) {
  if (!artifact.trial.verdict.stands())
    return Invalid("the verdict is '" + std::string(Name(artifact.trial.verdict.kind)) +
                   "', not correct");
  if (artifact.trial.verdict.kind == VerdictKind::kUnchecked) return {};  // it never ran
  const bool measured = artifact.evidence == Evidence::kMeasured;
  // First guesses on a GPU are verified and not timed.
  if (!measured && !artifact.trial.measurement && !artifact.trial.estimate) return {};
  if (measured ? !artifact.trial.measurement : !artifact.trial.estimate)
    return Invalid("the evidence is " + std::string(Name(artifact.evidence)) +
                   ", and there is no such number");
  return {};
}

Status CheckSizes(const Artifact& artifact) {
  for (const ArgSpec& arg : artifact.spec.args) {
    if (arg.role == Role::kScalar) continue;
    ATUNNER_TRY([[maybe_unused]] const TensorShape shape,
                ShapeOf(arg, artifact.spec, artifact.spec.dims));
  }
  for (const std::string& dim : artifact.valid_sizes.dims) {
    if (!artifact.spec.dims.contains(dim))
      return Invalid("the free dim '" + dim + "' is no dim of the task");
  }
  return Serves(artifact.valid_sizes, artifact.spec.dims, artifact.spec.dims,
                artifact.spec.attributes);
}

Status CheckFiles(const Artifact& artifact) {
  for (const auto& [file, digest] : artifact.digests) {
    if (std::ranges::find(kArtifactKernelFiles, file) == kArtifactKernelFiles.end())
      return Invalid("'" + file + "' is no file of an artifact");
  }
  if (!artifact.digests.contains("kernel.ptx") && !artifact.digests.contains("kernel.cubin"))
    return Invalid("there is neither kernel.ptx nor kernel.cubin");
  return {};
}

/// Checks what types cannot express: names must refer to something, numbers must agree.
Status Check(const Artifact& artifact) {
  ATUNNER_RETURN_IF_ERROR(CheckEvidence(artifact));
  ATUNNER_RETURN_IF_ERROR(CheckPlan(artifact));
  ATUNNER_RETURN_IF_ERROR(CheckSizes(artifact));
  return CheckFiles(artifact);
}

Status CheckFormat(const Json& json, std::string_view where) {
  const auto at = json.is_object() ? json.find("format") : json.end();
  const std::string format = json.is_object() && at != json.end() && at->is_string()
                                 ? at->get<std::string>()
                                 : "";
  int version = 0;
  if (format.starts_with(kFormatPrefix))
    std::from_chars(format.data() + kFormatPrefix.size(), format.data() + format.size(), version);
  if (version < 1) return Invalid("is not the manifest of an atunner artifact", std::string(where));
  if (version > kArtifactFormat) {
    return Fail(ErrorCode::kUnsupported,
                "has format " + std::to_string(version) + ", this version reads up to " +
                    std::to_string(kArtifactFormat),
                std::string(where), "a newer atunner wrote it: update this one");
  }
  return {};
}

}  // namespace

std::string ArtifactManifest(const Artifact& artifact) {
  Json json{{"format", std::string(kFormatPrefix) + std::to_string(kArtifactFormat)},
            {"name", artifact.name},
            {"evidence", std::string(Name(artifact.evidence))},
            {"device", artifact.device},
            {"compute_capability", {artifact.cc_major, artifact.cc_minor}},
            {"arch", artifact.arch},
            {"compiler", artifact.compiler},
            {"created", artifact.created},
            {"atunner", artifact.atunner_version},
            {"run", artifact.run},
            {"configuration", JsonOf(artifact.configuration)},
            {"spec", ToJson(artifact.spec)},
            {"plan", ToJson(artifact.plan)},
            {"free_sizes", JsonOf(artifact.valid_sizes)},
            {"resources", Json::array()},
            {"trial", ToJson(artifact.trial)},
            {"baselines", Json::array()},
            {"digests", Json::object()}};
  for (const KernelResources& kernel : artifact.resources)
    json["resources"].push_back(ToJson(kernel));
  for (const Baseline& baseline : artifact.baselines) json["baselines"].push_back(ToJson(baseline));
  for (const auto& [file, digest] : artifact.digests) json["digests"][file] = digest.ToHex();
  return DumpJson(json, 2) + "\n";
}

Result<Artifact> ParseArtifactManifest(std::string_view text, std::string_view where) {
  ATUNNER_TRY(const Json json, ParseJson(text, where));
  ATUNNER_RETURN_IF_ERROR(CheckFormat(json, where));
  Artifact artifact;
  try {
    artifact = Read(json);
  } catch (const std::exception& error) {
    return Invalid(std::string("malformed manifest: ") + error.what(), std::string(where));
  }
  if (const Status checked = Check(artifact); !checked) {
    return Invalid("inconsistent manifest: " + checked.error().ToString(), std::string(where));
  }
  return artifact;
}

}  // namespace atunner
