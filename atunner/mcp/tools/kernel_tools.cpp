#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/jobs/kernels/examine.h"
#include "atunner/jobs/kernels/hazard_checks.h"
#include "atunner/jobs/kernels/run_kernel.h"
#include "atunner/jobs/kernels/sanitize.h"
#include "atunner/mcp/protocol/schema.h"
#include "atunner/mcp/tools/arguments.h"
#include "atunner/mcp/tools/results.h"
#include "atunner/mcp/tools/tools.h"
#include "atunner/measure/harness.h"

namespace atunner::mcp {
namespace {

constexpr size_t kDiagnosticBytes = 4000;
constexpr size_t kPtxBytes = 0;
constexpr size_t kPrintedBytes = 4000;
constexpr size_t kMostHazards = 10;
constexpr double kLaunchSeconds = 60;
constexpr uint64_t kMostInstructions = uint64_t{1} << 28;
constexpr size_t kDefaultElements = 8;

/// The compiler's warnings; "" where its log has no letters, only ends of lines and zero bytes.
std::string WarningsOf(const CompiledModule& module) {
  std::string text;
  std::ranges::copy_if(module.log, std::back_inserter(text), [](char c) { return c != 0; });
  return text.find_first_not_of(" \r\n\t") == std::string::npos ? "" : text;
}

Result<Json> Compile(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  ATUNNER_TRY(const jobs::CompiledConfiguration compiled,
              jobs::CompileConfiguration(*kernel.schedule, kernel.configuration,
                                         kernel.problem->target, workbench.services()));
  const CompileOutcome& outcome = compiled.outcome;
  Json json{{"compiled", outcome.ok()},
            {"configuration", compiled.configuration},
            {"arch", kernel.problem->target.profile.Arch()}};
  if (!outcome.ok()) {
    json["diagnostics"] = workbench.texts().Bounded(outcome.error, kDiagnosticBytes);
    return json;
  }
  json["kernels"] = ResourcesJson(outcome.module->kernels);
  if (std::string warnings = WarningsOf(*outcome.module); !warnings.empty())
    json["warnings"] = workbench.texts().Bounded(std::move(warnings), kDiagnosticBytes);
  json["ptx"] = workbench.texts().Bounded(outcome.module->ptx, kPtxBytes);
  return json;
}

Result<jobs::Examination> Examined(const NamedKernel& kernel, bool time, Workbench& workbench) {
  return jobs::Examine(*kernel.schedule, kernel.configuration, {.time = time},
                       kernel.problem->target, workbench.services());
}

Result<Json> Verify(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  ATUNNER_TRY(const jobs::Examination found, Examined(kernel, false, workbench));
  return ExaminationJson(found);
}

/// The kernel compiled for the virtual GPU.
Result<jobs::LoadedKernel> Loaded(const NamedKernel& kernel, Compiler& compiler) {
  return jobs::LoadKernel(*kernel.schedule, kernel.configuration, kernel.problem->target, compiler);
}

Result<Json> Sanitize(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const uint8_t checks,
              jobs::ParseChecks(arguments.value("checks", "memory,init,race,sync")));
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  ATUNNER_TRY(const auto compiler,
              workbench.services().compilers.Open(jobs::kCompileTimeoutSeconds));
  ATUNNER_TRY(const jobs::LoadedKernel loaded, Loaded(kernel, *compiler));
  ATUNNER_TRY(
      const jobs::SanitizedKernel found,
      jobs::SanitizeLoaded(loaded, kernel.problem->target, *compiler,
                           jobs::OptionsOfChecks(checks, kLaunchSeconds, kMostInstructions)));
  Json json = HazardsJson(found.hazards, loaded.source, kMostHazards);
  json["clean"] = found.clean();
  json["blocks"] = found.blocks;
  json["configuration"] = found.configuration;
  if (!found.incomplete.empty()) json["incomplete"] = found.incomplete;
  if (!found.printed.empty())
    json["printed"] = workbench.texts().Bounded(found.printed, kPrintedBytes);
  return json;
}

Json TensorJson(const jobs::TensorValues& tensor) {
  return {{"name", tensor.name},         {"role", Name(tensor.role)},
          {"dtype", Name(tensor.dtype)}, {"shape", tensor.shape},
          {"first", tensor.first},       {"least", tensor.least},
          {"greatest", tensor.greatest}, {"not_finite", tensor.not_finite}};
}

Result<Json> Run(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  ATUNNER_TRY(const auto compiler,
              workbench.services().compilers.Open(jobs::kCompileTimeoutSeconds));
  ATUNNER_TRY(const jobs::LoadedKernel loaded, Loaded(kernel, *compiler));
  ATUNNER_TRY(const jobs::KernelRun run,
              jobs::RunKernel(loaded, kernel.problem->target, *compiler,
                              arguments.value("elements", kDefaultElements), kLaunchSeconds));
  Json json = HazardsJson(run.hazards, loaded.source, kMostHazards);
  json["completed"] = run.completed;
  json["outcome"] = run.outcome;
  json["blocks"] = run.blocks;
  json["configuration"] = run.configuration;
  json["printed"] = workbench.texts().Bounded(run.printed, kPrintedBytes);
  json["tensors"] = Json::array();
  for (const jobs::TensorValues& tensor : run.tensors)
    json["tensors"].push_back(TensorJson(tensor));
  return json;
}

/// The ratio of two times, null where one is missing.
Json Ratio(std::optional<double> slower, std::optional<double> faster) {
  return slower && faster ? Json(*slower / *faster) : Json();
}

Result<Json> Benchmark(const Json& arguments, const CallContext& context, Workbench& workbench) {
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  context.progress(0, 2, "verify and time the kernel");
  ATUNNER_TRY(const jobs::Examination found, Examined(kernel, true, workbench));
  context.progress(1, 2, "time the baseline");
  ATUNNER_TRY(const auto baseline,
              jobs::ExamineBaseline(*kernel.problem->schedule, {.time = true},
                                    kernel.problem->target, workbench.services()));
  Json json = ExaminationJson(found);
  json["floor_ns"] = PhysicalFloorNs(kernel.schedule->spec(), kernel.problem->target.profile);
  json["baseline_ns"] = baseline && baseline->Ns() ? Json(*baseline->Ns()) : Json();
  json["speedup"] = baseline ? Ratio(baseline->Ns(), found.Ns()) : Json();
  return json;
}

Result<Json> Compare(const Json& arguments, const CallContext& context, Workbench& workbench) {
  Json json{{"problem", arguments["problem"]}};
  std::vector<std::optional<double>> times;
  for (const char* side : {"a", "b"}) {
    if (context.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "cancelled");
    Json named = arguments[side];
    named["problem"] = arguments["problem"];
    if (const Status fits = CheckSchema(KernelSchema(), named, std::string("arguments.") + side);
        !fits)
      return std::unexpected(fits.error());
    ATUNNER_TRY(const NamedKernel kernel, KernelOf(named, workbench));
    context.progress(static_cast<double>(times.size()), 2, std::string("kernel ") + side);
    ATUNNER_TRY(const jobs::Examination found, Examined(kernel, true, workbench));
    json[side] = ExaminationJson(found);
    times.push_back(found.Ns());
  }
  json["b_times_as_fast_as_a"] = Ratio(times[0], times[1]);
  return json;
}

Tool KernelTool(const char* name, const char* title, const char* description, const char* more,
                Workbench& workbench, Result<Json> (*call)(const Json&, Workbench&)) {
  return {name,
          title,
          description,
          KernelSchema(more),
          true,
          [&workbench, call](const Json& arguments, const CallContext&) {
            return call(arguments, workbench);
          }};
}

}  // namespace

void AddKernelTools(Workbench& workbench, std::vector<Tool>& tools) {
  tools.push_back(KernelTool("compile", "Compile a kernel",
                             "Compiles a kernel for the problem's GPU: diagnostics, or registers, "
                             "shared memory, spills and a handle to the PTX.",
                             "{}", workbench, Compile));
  tools.push_back(KernelTool(
      "verify", "Verify a kernel",
      "Judges a kernel against the problem's reference on many inputs: verdict, reason, and the "
      "checks that failed. Works without a GPU.",
      "{}", workbench, Verify));
  tools.push_back(KernelTool(
      "sanitize", "Look for hazards",
      "Runs a kernel on the virtual GPU and reports accesses outside of memory, reads of "
      "undefined memory, races and misused barriers, each with its line.",
      R"({"checks": {"type": "string", "maxLength": 100,
          "description": "memory,init,race,sync or some of them"}})",
      workbench, Sanitize));
  tools.push_back(KernelTool(
      "run", "Run a kernel once",
      "Runs a kernel once on the virtual GPU with random inputs: what it printed, and the first "
      "elements and range of each tensor. For debugging; verify decides what is right.",
      R"({"elements": {"type": "integer", "minimum": 0, "maximum": 256,
          "description": "of each tensor to show; default 8"}})",
      workbench, Run));
  tools.push_back({"benchmark", "Time a kernel",
                   "Verifies a kernel, then measures it on the problem's GPU or predicts its time "
                   "where that GPU is not present; the baseline beside it. Wrong kernels get no "
                   "time.",
                   KernelSchema(), true,
                   [&workbench](const Json& arguments, const CallContext& context) {
                     return Benchmark(arguments, context, workbench);
                   }});
  tools.push_back(
      {"compare", "Compare two kernels",
       "Verifies and times two kernels of one problem. Each of `a` and `b` has the keys of a "
       "kernel (source, launch, workspaces, parameters, constraints, configuration); {} is the "
       "problem's own.",
       ObjectSchema(R"({"problem": {"type": "string", "maxLength": 200},
                        "a": {"type": "object"}, "b": {"type": "object"}})",
                    {"problem", "a", "b"}),
       true, [&workbench](const Json& arguments, const CallContext& context) {
         return Compare(arguments, context, workbench);
       }});
}

}  // namespace atunner::mcp
