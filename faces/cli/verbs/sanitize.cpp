// `sanitize`: every hazard of a kernel with its place in the source.
#include "atunner/jobs/kernels/sanitize.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/jobs/kernels/hazard_checks.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/hazard_text.h"
#include "faces/cli/output/progress.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/sanitize_program.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

using jobs::SanitizedKernel;

Json KernelJson(const SanitizedKernel& found, const SanitizeFlags& flags) {
  SourceLines source(found.source_name, found.source, found.folder);
  Json json{{"kernel", found.kernel},        {"configuration", found.configuration},
            {"target", found.gpu},           {"checks", flags.checks},
            {"blocks", found.blocks},        {"complete", found.incomplete.empty()},
            {"found", found.hazards.size()}, {"hazards", Json::array()}};
  const size_t shown = std::min(flags.max_reports, found.hazards.size());
  for (size_t i = 0; i < shown; ++i)
    json["hazards"].push_back(HazardJson(found.hazards[i], source));
  return json;
}

void PrintKernel(const SanitizedKernel& found, const SanitizeFlags& flags, bool quiet) {
  SourceLines source(found.source_name, found.source, found.folder);
  if (!quiet && !found.printed.empty()) fmt::print("{}", found.printed);
  const size_t shown = std::min(flags.max_reports, found.hazards.size());
  for (size_t i = 0; i < shown; ++i) PrintHazard(found.hazards[i], source);
  if (shown < found.hazards.size()) fmt::print("… and {} more\n", found.hazards.size() - shown);
  if (!found.incomplete.empty()) fmt::print("not complete: {}\n", found.incomplete);
  fmt::print("{}: {} on {} blocks, virtual {}, checks: {}{}\n", found.kernel,
             HowMany(found.hazards.size()), found.blocks, found.gpu, flags.checks,
             found.configuration.empty() ? "" : ", configuration: " + found.configuration);
}

/// Prints kernels as they are done; with --json collects what is printed at the end.
class KernelPrinter {
 public:
  KernelPrinter(const SanitizeFlags& flags, const Common& common)
      : flags_(flags),
        common_(common),
        progress_({.silent = common.quiet || common.json, .explain = common.explain}) {}

  void operator()(const jobs::Event& event) {
    progress_(event);
    if (const auto* done = std::get_if<jobs::KernelSanitizedEvent>(&event)) Done(done->result);
    if (const auto* refused = std::get_if<jobs::KernelRefusedEvent>(&event)) Refused(*refused);
  }
  const Json& reports() const { return reports_; }

 private:
  void Done(const SanitizedKernel& found) {
    if (common_.json)
      reports_.push_back(KernelJson(found, flags_));
    else
      PrintKernel(found, flags_, common_.quiet);
  }
  void Refused(const jobs::KernelRefusedEvent& event) {
    const Error error = WithFlags(event.error);
    if (common_.json)
      reports_.push_back({{"kernel", event.kernel}, {"refused", error.what}});
    else
      fmt::print(stderr, "{} was not run: {}\n", event.kernel, error.ToString());
  }

  const SanitizeFlags& flags_;
  const Common& common_;
  Progress progress_;
  Json reports_ = Json::array();
};

Result<int> SanitizeKernels(const SanitizeFlags& flags, const Context& context) {
  jobs::SanitizeRequest request;
  ATUNNER_TRY(request.kernel, flags.kernel.Request());
  ATUNNER_TRY(request.groups, jobs::ParseChecks(flags.checks));
  request.max_instructions = flags.max_instructions;
  Machine machine(context.common.store);
  KernelPrinter printer(flags, context.common);
  ATUNNER_TRY(const jobs::SanitizeResult result,
              jobs::Sanitize(request, machine.services(), std::ref(printer), InterruptToken()));
  const Json& reports = printer.reports();
  if (context.common.json) PrintJson(reports.size() == 1 ? reports[0] : reports);
  if (!std::ranges::all_of(result.kernels, &SanitizedKernel::clean)) return 1;
  if (result.refused) return std::unexpected(*result.refused);
  return 0;
}

bool IsExecutable(const std::string& file) {
  return ReadStart(file, 4).value_or("") ==
         "\x7f"
         "ELF";
}

Result<int> Sanitize(SanitizeFlags flags, const Context& context) {
  flags.program = context.program;
  const std::string& file = flags.kernel.file;
  if (!flags.program.empty()) {
    if (file.empty() && flags.kernel.task.operator_name.empty())
      return SanitizeProgram(flags, context.common);
    return Invalid("either a kernel or a program", file + " -- " + flags.program[0]);
  }
  if (IsExecutable(file))
    return Invalid("this is no source", file,
                   "a program is run by `atunner sanitize -- " + file + "`");
  return SanitizeKernels(flags, context);
}

}  // namespace

void AddSanitize(VerbList& verbs) {
  const auto flags = std::make_shared<SanitizeFlags>();
  CLI::App* verb = verbs.Add(
      "sanitize", "find hazards: bounds, uninitialised memory, races, barriers (virtual GPU)",
      [flags](const Context& c) { return Sanitize(*flags, c); });
  AddKernel(verb, flags->kernel);
  verb->footer(
      "atunner sanitize [options] -- PROGRAM ARGUMENTS: all that an executable of nvcc's "
      "launches");
  verb->add_option("--check", flags->checks,
                   "any of memory,init,race,sync; memory is always among them");
  verb->add_option("--max-reports", flags->max_reports, "most hazards to print");
  verb->add_option("--max-instructions", flags->max_instructions,
                   "warp instructions after which a block counts as endless")
      ->check(Positive());
}

}  // namespace atunner::cli
