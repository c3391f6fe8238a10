// `sanitize -- PROGRAM`: a whole program, with the virtual GPU in the place of CUDA's driver and
// runtime.
#include "faces/cli/verbs/sanitize_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/jobs/kernels/hazard_checks.h"
#include "atunner/jobs/kernels/loaded_kernel.h"
#include "faces/cli/output/hazard_text.h"
#include "faces/cli/output/render.h"
#include "faces/program/findings.h"
#include "faces/program/run_program.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// Without a GPU here and without a name: an A100 or, where the program was built for later GPUs,
/// the first of those.
Result<Target> TargetOfProgram(const SanitizeFlags& flags, jobs::Devices& devices) {
  ATUNNER_TRY(jobs::KernelRequest request, flags.kernel.Request());
  if (request.gpu == "auto" && !devices.HasGpu())
    request.gpu = program::GpuForProgram(flags.program[0]);
  return jobs::TargetOf(request, devices);
}

void PrintFindings(const program::Findings& found, const SanitizeFlags& flags, const Target& target,
                   SourceLines& source) {
  const size_t shown = std::min(flags.max_reports, found.hazards.size());
  for (size_t i = 0; i < shown; ++i) PrintHazard(found.hazards[i], source);
  if (shown < found.hazards.size()) fmt::print("… and {} more\n", found.hazards.size() - shown);
  for (const std::string& error : found.errors) fmt::print("error: {}\n", error);
  fmt::print("{}: {} in {} launch{} of {} block{}, virtual {}, checks: {}\n", flags.program[0],
             HowMany(found.hazards.size()), found.launches, found.launches == 1 ? "" : "es",
             found.blocks, found.blocks == 1 ? "" : "s", target.profile.name, flags.checks);
}

Json FindingsJson(const program::Findings& found, const SanitizeFlags& flags, const Target& target,
                  const program::Ending& ending, SourceLines& source) {
  Json json{{"program", flags.program},
            {"target", target.profile.name},
            {"checks", flags.checks},
            {"launches", found.launches},
            {"blocks", found.blocks},
            {"exit_code", ending.signal != 0 ? Json() : Json(ending.exit_code)},
            {"signal", ending.signal != 0 ? Json(ending.signal) : Json()},
            {"errors", found.errors},
            {"found", found.hazards.size()},
            {"hazards", Json::array()}};
  for (size_t i = 0; i < std::min(flags.max_reports, found.hazards.size()); ++i)
    json["hazards"].push_back(HazardJson(found.hazards[i], source));
  return json;
}

void Print(const program::Findings& found, const SanitizeFlags& flags, const Target& target,
           const program::Ending& ending, bool json) {
  SourceLines source("", "", Path(flags.program[0]).parent_path());
  if (json) {
    PrintJson(FindingsJson(found, flags, target, ending, source));
    return;
  }
  PrintFindings(found, flags, target, source);
  if (!ending.well()) fmt::print("{}\n", ending.ToString());
}

}  // namespace

Result<int> SanitizeProgram(const SanitizeFlags& flags, const Common& common) {
  Machine machine(common.store);
  ATUNNER_TRY(const Target target, TargetOfProgram(flags, machine.services().devices));
  ATUNNER_TRY(const uint8_t groups, jobs::ParseChecks(flags.checks));
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  const Path report = folder.path() / "report";
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(report, ""));
  program::Order order;
  order.profile = target.profile;
  order.groups = groups;
  order.timeout_seconds = flags.kernel.timeout_seconds;
  order.max_instructions = flags.max_instructions;
  order.report = report.string();
  ATUNNER_TRY(const program::Ending ending, program::RunUnder(order, flags.program, common.json));
  ATUNNER_TRY(const std::string text, ReadFile(report));
  ATUNNER_TRY(program::Findings found, program::ReadReport(text));
  jobs::JoinSides(found.hazards);
  Print(found, flags, target, ending, common.json);
  if (text.empty() && ending.well())
    return Invalid("the program called nothing of CUDA that could be answered", flags.program[0],
                   "its symbols are needed: do not strip it, or build it with nvcc -cudart shared");
  return found.hazards.empty() && found.errors.empty() && ending.well() ? 0 : 1;
}

}  // namespace atunner::cli
