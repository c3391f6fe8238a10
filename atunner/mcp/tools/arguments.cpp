#include "atunner/mcp/tools/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/intake/cuda/cuda_lexer.h"
#include "atunner/intake/user_kernel.h"
#include "atunner/jobs/kernels/proposal.h"
#include "atunner/model/kernel/accuracy.h"

namespace atunner::mcp {
namespace {

Value ValueOf(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

/// A number, or an expression over the problem's sizes and the parameters.
Result<Expr> ExprOf(const Json& json, const std::string& place) {
  if (json.is_number_integer()) return Expr(json.get<int64_t>());
  auto parsed = Expr::Parse(json.get<std::string>());
  if (!parsed) return Invalid(parsed.error().what, place, parsed.error().hint);
  return *std::move(parsed);
}

Status ReadExtents(const Json& step, const char* key, const std::string& place,
                   std::array<Expr, 3>& extents) {
  const Json listed = step.value(key, Json::array());
  for (size_t i = 0; i < listed.size(); ++i) {
    ATUNNER_TRY(extents[i], ExprOf(listed[i], fmt::format("{}.{}[{}]", place, key, i)));
  }
  return {};
}

bool IsWorkspace(const LaunchPlan& plan, const std::string& name) {
  return std::ranges::any_of(plan.workspaces, [&](const Workspace& w) { return w.name == name; });
}

/// "x": an argument of the task or a workspace; "rows: int32": a scalar.
Result<ArgBinding> BindingOf(const std::string& text, const LaunchPlan& plan,
                             const KernelSpec& spec, const std::string& place) {
  if (const size_t colon = text.rfind(':'); colon != std::string::npos) {
    const size_t from = text.find_first_not_of(' ', colon + 1);
    const auto type = from == std::string::npos ? std::nullopt : ParseDType(text.substr(from));
    if (!type)
      return Invalid("'" + text + "' has no known type", place,
                     "write \"expression: type\"; types are " + DTypeNames());
    ATUNNER_TRY(Expr value, ExprOf(Json(text.substr(0, colon)), place));
    return ArgBinding::Scalar(*type, std::move(value));
  }
  if (IsWorkspace(plan, text)) return ArgBinding::Workspace(text);
  const ArgSpec* arg = spec.FindArg(text);
  if (arg != nullptr && arg->role == Role::kScalar)
    return ArgBinding::Scalar(arg->dtype, *arg->value);
  return ArgBinding::Tensor(text);  // an unknown name is refused with the schedule
}

Result<LaunchStep> StepOf(const Json& json, const LaunchPlan& plan, const KernelSpec& spec,
                          const std::string& place) {
  LaunchStep step;
  step.entry = json["kernel"];
  ATUNNER_RETURN_IF_ERROR(ReadExtents(json, "grid", place, step.grid));
  ATUNNER_RETURN_IF_ERROR(ReadExtents(json, "block", place, step.block));
  ATUNNER_RETURN_IF_ERROR(ReadExtents(json, "cluster", place, step.cluster));
  ATUNNER_TRY(step.shared_bytes, ExprOf(json.value("shared_bytes", Json(0)), place));
  step.cooperative = json.value("cooperative", false);
  for (const Json& argument : json["arguments"]) {
    ATUNNER_TRY(step.args.emplace_back(),
                BindingOf(argument.get<std::string>(), plan, spec, place + ".arguments"));
  }
  return step;
}

Result<LaunchPlan> PlanOf(const Json& arguments, const KernelSpec& spec) {
  LaunchPlan plan;
  for (const Json& workspace : arguments.value("workspaces", Json::array())) {
    ATUNNER_TRY(Expr bytes, ExprOf(workspace["bytes"], "arguments.workspaces"));
    plan.workspaces.push_back({workspace["name"], std::move(bytes)});
  }
  const Json& steps = arguments["launch"];
  for (size_t i = 0; i < steps.size(); ++i) {
    ATUNNER_TRY(plan.steps.emplace_back(),
                StepOf(steps[i], plan, spec, fmt::format("arguments.launch[{}]", i)));
  }
  return plan;
}

Result<ParameterSpace> SpaceOf(const Json& arguments) {
  ParameterSpace space;
  const Json parameters = arguments.value("parameters", Json::object());
  for (const auto& [name, values] : parameters.items()) {
    Parameter parameter{name, {}, "", {}, {}, {}};
    for (const Json& value : values) parameter.values.push_back(ValueOf(value));
    space.parameters.push_back(std::move(parameter));
  }
  for (const Json& text : arguments.value("constraints", Json::array())) {
    ATUNNER_TRY(Expr condition, ExprOf(text, "arguments.constraints"));
    space.constraints.push_back({std::move(condition), ""});
  }
  return space;
}

/// True for `#include <name>` with a header of the compiler's; other directives are fine, too.
bool IncludesNoFile(std::string_view directive) {
  const size_t at = directive.find("include");
  if (at == std::string_view::npos) return true;
  std::string_view rest = directive.substr(at + 7);
  while (rest.starts_with(' ') || rest.starts_with('\t')) rest.remove_prefix(1);
  return rest.starts_with('<') && !rest.starts_with("</") &&
         rest.find("..") == std::string_view::npos;
}

/// Clients on other machines must not read this one's files by `#include`.
Status CheckIncludes(const Json& arguments, const WorkbenchSettings& settings) {
  if (settings.files || !arguments.contains("source")) return {};
  const std::string text = arguments["source"];
  const LexedSource lexed = Lex(text);
  const bool fine = std::ranges::all_of(lexed.tokens, [](const Token& token) {
    return token.kind != Token::Kind::kDirective || IncludesNoFile(token.text);
  });
  // "%:" is another spelling of "#".
  if (fine && text.find("%:") == std::string::npos) return {};
  return Invalid("files of the server cannot be included", "arguments.source",
                 "include headers of the compiler alone (<cuda_fp16.h>), and send the rest inline");
}

using Schedule = Result<std::unique_ptr<ScheduleTemplate>>;

/// A whole file, an edited copy of the user's own.
Schedule EditedFile(const Json& arguments, const Problem& problem, Workbench& workbench) {
  if (problem.request.file.empty())
    return Invalid("how to launch the source is not said", "arguments.launch",
                   "describe_problem shows the launch of the plain kernel in the same form");
  const Path original = problem.request.file;
  ATUNNER_TRY(const Path file, workbench.Write(original.filename().string(), arguments["source"]));
  jobs::ProblemRequest edited = problem.request;
  edited.file = file;
  ATUNNER_TRY(auto schedule, jobs::OpenProblem(edited, problem.target, [](const jobs::Event&) {}));
  return jobs::MakeProposedSchedule(*problem.schedule, std::move(schedule));
}

Schedule Proposed(const Json& arguments, const Problem& problem, Workbench& workbench) {
  if (!arguments.contains("launch")) return EditedFile(arguments, problem, workbench);
  jobs::Proposal proposal;
  proposal.kernel.source.text = arguments["source"];
  ATUNNER_TRY(proposal.kernel.plan, PlanOf(arguments, problem.schedule->spec()));
  ATUNNER_TRY(proposal.space, SpaceOf(arguments));
  return jobs::MakeProposedSchedule(*problem.schedule, std::move(proposal));
}

std::string ConfigurationText(const Json& configuration) {
  std::string text;
  for (const auto& [name, value] : configuration.items())
    text += (text.empty() ? "" : ",") + name + "=" + ToString(ValueOf(value));
  return text;
}

/// Keys that say how a source is to be launched or tuned.
std::string KeyWithoutSource(const Json& arguments) {
  for (const char* key : {"launch", "workspaces", "parameters", "constraints"}) {
    if (arguments.contains(key)) return key;
  }
  return "";
}

Result<jobs::TaskRequest> TaskOf(const Json& arguments) {
  jobs::TaskRequest task;
  task.operator_name = arguments.value("operator", "");
  for (const Json& shape : arguments.value("shapes", Json::array()))
    task.shapes.push_back(shape.get<std::vector<int64_t>>());
  const std::string dtype = arguments.value("dtype", "float32");
  const auto parsed = ParseDType(dtype);
  if (!parsed)
    return Invalid("unknown type '" + dtype + "'", "arguments.dtype", "use " + DTypeNames());
  task.dtype = *parsed;
  const Json attributes = arguments.value("attributes", Json::object());
  for (const auto& [name, value] : attributes.items()) task.attributes[name] = ValueOf(value);
  if (arguments.contains("graph"))
    task.graph = jobs::GraphText{arguments["graph"], "arguments.graph"};
  const Json sizes = arguments.value("sizes", Json::object());
  for (const auto& [name, size] : sizes.items()) task.dims.push_back({name, {size.get<int64_t>()}});
  return task;
}

Json ExtentsJson(const std::array<Expr, 3>& extents) {
  Json json = Json::array();
  for (const Expr& extent : extents) json.push_back(extent.text());
  return json;
}

std::string ArgumentText(const ArgBinding& arg) {
  if (arg.kind == ArgBinding::Kind::kScalar)
    return fmt::format("{}: {}", arg.value.text(), Name(arg.dtype));
  if (IsMap(arg.kind)) return "(tensor map of " + arg.name + ")";
  return arg.name;
}

}  // namespace

Json LaunchJson(const LaunchPlan& plan) {
  Json steps = Json::array();
  for (const LaunchStep& step : plan.steps) {
    Json json{{"kernel", step.entry},
              {"grid", ExtentsJson(step.grid)},
              {"block", ExtentsJson(step.block)},
              {"shared_bytes", step.shared_bytes.text()},
              {"arguments", Json::array()}};
    for (const ArgBinding& arg : step.args) json["arguments"].push_back(ArgumentText(arg));
    steps.push_back(std::move(json));
  }
  return steps;
}

Result<jobs::ProblemRequest> ProblemOf(const Json& arguments, Workbench& workbench) {
  ATUNNER_RETURN_IF_ERROR(CheckIncludes(arguments, workbench.settings()));
  const bool task = arguments.contains("operator") || arguments.contains("graph");
  const int named = static_cast<int>(arguments.contains("operator")) +
                    static_cast<int>(arguments.contains("graph")) +
                    static_cast<int>(arguments.contains("source")) +
                    static_cast<int>(arguments.contains("file"));
  if (named != 1)
    return Invalid("give exactly one of operator, graph, source and file", "arguments");
  jobs::ProblemRequest request;
  request.kernel = arguments.value("kernel", "");
  if (task) {
    ATUNNER_TRY(request.task, TaskOf(arguments));
  } else if (arguments.contains("source")) {
    ATUNNER_TRY(request.file, workbench.Write("kernel.cu", arguments["source"]));
  } else if (!workbench.settings().files) {
    return Invalid("files of the server cannot be named here", "arguments.file",
                   "send the text as `source`");
  } else {
    request.file = arguments["file"].get<std::string>();
  }
  return request;
}

Result<NamedKernel> KernelOf(const Json& arguments, Workbench& workbench) {
  ATUNNER_RETURN_IF_ERROR(CheckIncludes(arguments, workbench.settings()));
  NamedKernel kernel;
  ATUNNER_TRY(kernel.problem, workbench.Find(arguments["problem"]));
  kernel.configuration = ConfigurationText(arguments.value("configuration", Json::object()));
  kernel.proposed = arguments.contains("source");
  if (kernel.proposed) {
    ATUNNER_TRY(kernel.schedule, Proposed(arguments, *kernel.problem, workbench));
    return kernel;
  }
  if (const std::string key = KeyWithoutSource(arguments); !key.empty())
    return Invalid("goes with a source of your own", "arguments." + key, "add `source`");
  kernel.schedule = kernel.problem->schedule;
  return kernel;
}

}  // namespace atunner::mcp
