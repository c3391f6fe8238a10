#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "atunner/base/closest_name.h"
#include "atunner/codegen/template/family.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/mcp/tools/arguments.h"
#include "atunner/mcp/tools/tools.h"
#include "atunner/measure/harness.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/operator.h"
#include "atunner/operators/task.h"

namespace atunner::mcp {
namespace {

constexpr size_t kSourceBytes = 6000;
constexpr size_t kMostOperators = 400;
constexpr size_t kMostValues = 24;

Result<Json> GpuInfo(const Json& arguments) {
  if (arguments.contains("gpu")) {
    ATUNNER_TRY(const DeviceProfile profile, FindProfile(arguments["gpu"].get<std::string>()));
    return Json{{"profile", ToJson(profile)}, {"arch", profile.Arch()}};
  }
  Json json{{"present", Json::array()}, {"known", Json::array()}};
  if (const auto devices = ListRealDevices()) {
    for (const RealDeviceInfo& device : *devices)
      json["present"].push_back({{"index", device.index}, {"gpu", device.profile.name}});
  } else {
    json["why_none"] = devices.error().what;
  }
  for (const DeviceProfile& profile : KnownProfiles()) json["known"].push_back(profile.name);
  json["evidence"] = json["present"].empty() ? "predicted" : "measured on a GPU that is present";
  return json;
}

Json ArgumentJson(const ArgSpec& arg, const KernelSpec& spec) {
  Json json{{"name", arg.name},
            {"role", Name(arg.role)},
            {"dtype", Name(arg.dtype)},
            {"cuda_type", CudaName(arg.dtype)}};
  if (arg.role == Role::kScalar) {
    json["value"] = arg.value->text();
    return json;
  }
  json["shape"] = Json::array();
  for (const Expr& extent : arg.shape) json["shape"].push_back(extent.text());
  if (const auto shape = ShapeOf(arg, spec, spec.dims)) json["extents"] = shape->extents;
  return json;
}

Json SizesJson(const Dims& dims) {
  Json json = Json::object();
  for (const auto& [name, size] : dims) json[name] = size;
  return json;
}

Json AttributesJson(const Attributes& attributes) {
  Json json = Json::object();
  for (const auto& [name, value] : attributes)
    std::visit([&](const auto& one) { json[name] = one; }, value);
  return json;
}

/// How results are compared, in words; the client cannot change it.
std::string ToleranceText(const KernelSpec& spec) {
  if (spec.tolerance.relative || spec.tolerance.absolute) return "the bounds that the task states";
  if (spec.oracle.kind == Oracle::Kind::kKernel)
    return "the results of the kernel as given, within an error budget of its own rounding";
  return std::string(
             "a float64 reference, within an error budget of the plain kernel's rounding; "
             "accuracy policy: ") +
         std::string(Name(AccuracyOf(spec)));
}

Json BaselineJson(const ScheduleTemplate& schedule, Workbench& workbench) {
  const auto naive = schedule.Naive();
  if (!naive) return nullptr;
  return {{"source", workbench.texts().Bounded(naive->source.text, kSourceBytes)},
          {"launch", LaunchJson(naive->plan)}};
}

std::string FamilyNameOf(const KernelSpec& spec) {
  if (spec.oracle.kind == Oracle::Kind::kKernel) return "your kernel";
  const Family* family = FamilyOf(Task::Of(spec));
  return family == nullptr ? "plain kernels" : std::string(family->name);
}

Json ProblemJson(const Problem& problem, Workbench& workbench) {
  const ScheduleTemplate& schedule = *problem.schedule;
  const KernelSpec& spec = schedule.spec();
  Json json{{"problem", problem.id},
            {"name", spec.name},
            {"gpu", problem.target.profile.name},
            {"arch", problem.target.profile.Arch()},
            {"evidence", Name(problem.target.evidence())},
            {"sizes", SizesJson(spec.dims)},
            {"attributes", AttributesJson(spec.attributes)},
            {"arguments", Json::array()}};
  for (const ArgSpec& arg : spec.args) json["arguments"].push_back(ArgumentJson(arg, spec));
  json["compared_with"] = ToleranceText(spec);
  json["flops"] = FlopCount(spec, spec.dims).value_or(0);
  json["bytes"] = MinimumBytes(spec, spec.dims).value_or(0);
  json["floor_ns"] = PhysicalFloorNs(spec, problem.target.profile);
  json["template"] = {{"family", FamilyNameOf(spec)}, {"parameters", schedule.space().Names()}};
  json["baseline"] = BaselineJson(schedule, workbench);
  if (spec.oracle.kind == Oracle::Kind::kGraph) json["graph"] = spec.oracle.graph;
  if (!problem.notes.empty()) json["notes"] = problem.notes;
  return json;
}

Result<Json> DescribeProblem(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const jobs::ProblemRequest request, ProblemOf(arguments, workbench));
  ATUNNER_TRY(const auto problem, workbench.Register(request, arguments.value("gpu", "")));
  return ProblemJson(*problem, workbench);
}

Json ParameterJson(const Parameter& parameter, const Value& initial) {
  Json values = Json::array();
  for (size_t i = 0; i < std::min(kMostValues, parameter.values.size()); ++i)
    values.push_back(ToString(parameter.values[i]));
  Json json{{"name", parameter.name}, {"values", values}, {"default", ToString(initial)}};
  if (parameter.values.size() > kMostValues) json["number_of_values"] = parameter.values.size();
  if (!parameter.meaning.empty()) json["meaning"] = parameter.meaning;
  return json;
}

Json TemplateJson(const Problem& problem) {
  const ScheduleTemplate& schedule = *problem.schedule;
  const ParameterSpace& space = schedule.space();
  const Configuration initial = schedule.Default();
  Json json{{"problem", problem.id},
            {"family", FamilyNameOf(schedule.spec())},
            {"combinations", space.CartesianSize()},
            {"parameters", Json::array()},
            {"constraints", Json::array()}};
  for (size_t i = 0; i < space.parameters.size(); ++i)
    json["parameters"].push_back(ParameterJson(space.parameters[i], initial.values[i]));
  for (const Constraint& constraint : space.constraints)
    json["constraints"].push_back(constraint.condition.text());
  return json;
}

Json OperatorJson(const OperatorInfo& info) {
  Json json{{"operator", info.name}, {"summary", info.summary}, {"shapes", info.shape_help}};
  for (const AttributeInfo& attribute : info.attributes)
    json["attributes"][attribute.name] = {{"default", ToString(attribute.fallback)},
                                          {"meaning", attribute.meaning}};
  return json;
}

/// Operators whose names contain `part`: described if they are few, else named.
Result<Json> OperatorsJson(const std::string& part) {
  constexpr size_t kDescribed = 12;
  std::vector<const OperatorInfo*> found;
  for (const Operator* op : AllOperators()) {
    if (op->info().name.find(WithUnderscores(part)) != std::string::npos)
      found.push_back(&op->info());
  }
  if (found.empty())
    return Fail(ErrorCode::kNotFound, "no operator is called like '" + part + "'",
                "arguments.operators", "an empty text lists all names");
  Json list = Json::array();
  for (size_t i = 0; i < std::min(kMostOperators, found.size()); ++i)
    list.push_back(found.size() <= kDescribed ? OperatorJson(*found[i]) : Json(found[i]->name));
  return Json{{"operators", std::move(list)}, {"found", found.size()}};
}

Result<Json> ListTemplates(const Json& arguments, Workbench& workbench) {
  if (!arguments.contains("problem")) return OperatorsJson(arguments.value("operators", ""));
  ATUNNER_TRY(const auto problem, workbench.Find(arguments["problem"]));
  return TemplateJson(*problem);
}

constexpr const char* kDescribeProperties = R"json({
  "operator": {"type": "string", "maxLength": 200,
    "description": "operator of the library; list_templates names them"},
  "shapes": {"type": "array", "maxItems": 16, "items": {"type": "array", "maxItems": 16, "items": {"type": "integer", "minimum": 1}},
    "description": "shapes as the operator asks for them: [[8192, 4096]]"},
  "dtype": {"type": "string", "maxLength": 20,
    "description": "float32 (default), float16, bfloat16, float64 …"},
  "attributes": {"type": "object", "additionalProperties": {"type": ["integer", "number", "string", "boolean"], "maxLength": 200}},
  "graph": {"type": "string", "maxLength": 200000,
    "description": "instead of an operator: a tensor program in text form"},
  "sizes": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1},
    "description": "sizes of the graph's symbols"},
  "source": {"type": "string", "maxLength": 1000000,
    "description": "instead of an operator: the text of a .cu file with a kernel and the host code that launches it"},
  "file": {"type": "string", "maxLength": 4000,
    "description": "instead of an operator: a .cu, kernel .toml or Kernel Tuner .json on this machine"},
  "kernel": {"type": "string", "maxLength": 500,
    "description": "which kernel of the source or file"},
  "gpu": {"type": "string", "maxLength": 100,
    "description": "GPU to write for (gpu_info names them); default: the one in this machine, else A100"}
})json";

}  // namespace

void AddProblemTools(Workbench& workbench, std::vector<Tool>& tools) {
  tools.push_back({"gpu_info", "GPUs",
                   "GPUs of this machine and the names of all GPUs that times can be predicted "
                   "for; with a name, its whole profile.",
                   ObjectSchema(R"({"gpu": {"type": "string", "maxLength": 100}})", {}), true,
                   [](const Json& arguments, const CallContext&) { return GpuInfo(arguments); }});
  tools.push_back(
      {"describe_problem", "Describe a problem",
       "Registers what is to be computed (an operator at a size, a graph, or a kernel as given) "
       "for one GPU, and returns its id, arguments, baseline kernel with its launch, and the "
       "physical floor of its time. All other tools take the id. Sizes, inputs, tolerance and "
       "baseline are then fixed.",
       ObjectSchema(kDescribeProperties, {}), true,
       [&workbench](const Json& arguments, const CallContext&) {
         return DescribeProblem(arguments, workbench);
       }});
  tools.push_back(
      {"list_templates", "Templates and operators",
       "With a problem: the schedule template that atunner has for it and its tunable parameters. "
       "Without: the operators whose names contain `operators`.",
       ObjectSchema(R"({"problem": {"type": "string", "maxLength": 200},
                        "operators": {"type": "string", "maxLength": 100}})",
                    {}),
       true, [&workbench](const Json& arguments, const CallContext&) {
         return ListTemplates(arguments, workbench);
       }});
}

}  // namespace atunner::mcp
