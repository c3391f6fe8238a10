// `sanitize`: every hazard of a kernel with its place in the source.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "faces/cli/field_paths.h"
#include "faces/cli/hazard_text.h"

namespace atunner::cli {
namespace {

/// What all launches of one plan brought up.
struct Findings {
  std::vector<Hazard> hazards;
  std::string printed;     ///< by the kernels
  std::string incomplete;  ///< why not everything was run; "" = it was
  uint64_t blocks = 0;
};

Result<Findings> Examine(SubjectOnDevice& subject, const SanitizeFlags& flags, uint8_t groups) {
  Findings found;
  const LaunchOptions options = OptionsOfChecks(groups, flags.subject.timeout_seconds,
                                                flags.max_instructions);
  for (const BoundStep& step : subject.steps()) {
    ATUNNER_TRY(LaunchOutcome outcome,
                subject.gpu().Launch(subject.module(), step.entry, step.shape, step.args, options));
    found.blocks += outcome.blocks_executed;
    found.printed += outcome.printed;
    if (outcome.kind == LaunchOutcome::Kind::kRefused ||
        outcome.kind == LaunchOutcome::Kind::kUnsupported)
      return Invalid("'" + step.entry + "' cannot be launched: " + outcome.message);
    const bool stops = !outcome.completed();
    if (outcome.kind == LaunchOutcome::Kind::kTimeout && outcome.hazards.empty())
      found.incomplete = outcome.message;
    found.hazards.insert(found.hazards.end(), outcome.hazards.begin(), outcome.hazards.end());
    if (!stops) continue;
    if (&step != &subject.steps().back() && found.incomplete.empty())
      found.incomplete = "the steps after '" + step.entry + "' were not run";
    return found;
  }
  for (Hazard& leak : subject.gpu().Leaks(subject.module())) {
    const auto same = std::ranges::find_if(found.hazards, [&](const Hazard& h) {
      return h.kind == leak.kind && h.where == leak.where;
    });
    if (same == found.hazards.end())
      found.hazards.push_back(std::move(leak));
    else
      ++same->count;
  }
  return found;
}

/// What one kernel brought up, told; with --json it joins `reports`.
Result<int> SanitizeOne(const SanitizeFlags& flags, const Target& target, Compiler& compiler,
                        const Common& common, Json& reports) {
  ATUNNER_TRY(const uint8_t groups, ParseChecks(flags.checks));
  ATUNNER_TRY(const Subject subject, LoadSubject(flags.subject, target, compiler, common));
  ATUNNER_TRY(const auto device, SubjectOnDevice::Make(subject, target, compiler));
  ATUNNER_TRY(Findings found, Examine(*device, flags, groups));
  JoinSides(found.hazards);
  for (Hazard& hazard : found.hazards) {
    if (const KernelResources* kernel = subject.candidate.module.Find(hazard.kernel))
      hazard.kernel = kernel->entry;
  }
  SourceLines source(subject);
  const int exit_code = found.hazards.empty() && found.incomplete.empty() ? 0 : 1;
  const size_t shown = std::min(flags.max_reports, found.hazards.size());
  if (common.json) {
    Json json{{"kernel", subject.name},        {"configuration", subject.configuration},
              {"target", target.profile.name}, {"checks", flags.checks},
              {"blocks", found.blocks},        {"complete", found.incomplete.empty()},
              {"found", found.hazards.size()}, {"hazards", Json::array()}};
    for (size_t i = 0; i < shown; ++i)
      json["hazards"].push_back(HazardJson(found.hazards[i], source));
    reports.push_back(std::move(json));
    return exit_code;
  }
  if (!common.quiet && !found.printed.empty()) fmt::print("{}", found.printed);
  for (size_t i = 0; i < shown; ++i) PrintHazard(found.hazards[i], source);
  if (shown < found.hazards.size()) fmt::print("… and {} more\n", found.hazards.size() - shown);
  if (!found.incomplete.empty()) fmt::print("not complete: {}\n", found.incomplete);
  fmt::print("{}: {} on {} blocks, virtual {}, checks: {}{}\n", subject.name,
             HowMany(found.hazards.size()), found.blocks, target.profile.name, flags.checks,
             subject.configuration.empty() ? "" : ", configuration: " + subject.configuration);
  return exit_code;
}

bool IsExecutable(const std::string& file) {
  return ReadStart(file, 4).value_or("") ==
         "\x7f"
         "ELF";
}

}  // namespace

Result<int> Sanitize(const SanitizeFlags& flags, const Common& common) {
  if (!flags.program.empty()) {
    if (flags.subject.file.empty() && flags.subject.operation.operator_name.empty())
      return SanitizeProgram(flags, common);
    return Invalid("either a kernel or a program", flags.subject.file + " -- " + flags.program[0]);
  }
  if (IsExecutable(flags.subject.file))
    return Invalid("this is no source", flags.subject.file,
                   "a program is run by `atunner sanitize -- " + flags.subject.file + "`");
  ATUNNER_TRY(const Target target, TargetOf(flags.subject));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  const std::vector<std::string> kernels = KernelsOf(flags.subject.file, flags.subject.kernel);
  Json reports = Json::array();
  std::optional<Error> refused;
  int exit_code = 0;
  for (const std::string& kernel : kernels) {
    SanitizeFlags one = flags;
    one.subject.kernel = kernel;
    const auto examined = SanitizeOne(one, target, *compiler, common, reports);
    if (examined) {
      exit_code = std::max(exit_code, *examined);
      continue;
    }
    if (kernels.size() == 1 || examined.error().code != ErrorCode::kInvalidInput)
      return std::unexpected(examined.error());
    if (common.json)
      reports.push_back({{"kernel", kernel}, {"refused", WithFlags(examined.error().what)}});
    else
      fmt::print(stderr, "{} was not run: {}\n", kernel, WithFlags(examined.error()).ToString());
    refused = examined.error();
  }
  if (common.json) PrintJson(kernels.size() == 1 ? reports[0] : reports);
  if (exit_code == 0 && refused) return std::unexpected(*refused);
  return exit_code;
}

}  // namespace atunner::cli
