// `sanitize`: every hazard of a kernel with its place in the source.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "faces/cli/subject.h"

namespace atunner::cli {
namespace {

constexpr std::pair<std::string_view, HazardGroup> kChecks[] = {{"memory", HazardGroup::kMemory},
                                                                {"init", HazardGroup::kInit},
                                                                {"race", HazardGroup::kRace},
                                                                {"sync", HazardGroup::kSync}};

Result<uint8_t> ParseChecks(const std::string& text) {
  auto groups = static_cast<uint8_t>(HazardGroup::kMemory);
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto at = std::ranges::find(kChecks, name, &std::pair<std::string_view, HazardGroup>::first);
    if (at == std::end(kChecks))
      return Invalid("there is no check '" + name + "'", "--check " + text, "use any of memory, init, race, sync");
    groups |= static_cast<uint8_t>(at->second);
  }
  return groups;
}

std::string_view CheckOf(const Hazard& hazard) {
  const auto at = std::ranges::find(kChecks, GroupOf(hazard.kind), &std::pair<std::string_view, HazardGroup>::second);
  return at->first;
}

/// What all launches of one plan brought up.
struct Findings {
  std::vector<Hazard> hazards;
  std::string printed;     ///< by the kernels
  std::string incomplete;  ///< why not everything was run; "" = it was
  uint64_t blocks = 0;
};

Result<Findings> Examine(SubjectOnDevice& subject, const SanitizeFlags& flags, uint8_t groups) {
  Findings found;
  LaunchOptions options;
  options.check_hazards = groups != static_cast<uint8_t>(HazardGroup::kMemory);
  options.check_global = options.keep_going = true;
  options.groups = groups;
  options.timeout_seconds = flags.subject.timeout_seconds;
  options.max_warp_instructions_per_block = flags.max_instructions;
  for (const BoundStep& step : subject.steps()) {
    ATUNNER_TRY(LaunchOutcome outcome,
                subject.gpu().Launch(subject.module(), step.entry, step.shape, step.args, options));
    found.blocks += outcome.blocks_executed;
    found.printed += outcome.printed;
    if (outcome.kind == LaunchOutcome::Kind::kRefused || outcome.kind == LaunchOutcome::Kind::kUnsupported)
      return Invalid("'" + step.entry + "' cannot be launched: " + outcome.message);
    const bool stops = !outcome.completed();
    if (outcome.kind == LaunchOutcome::Kind::kTimeout && outcome.hazards.empty()) found.incomplete = outcome.message;
    found.hazards.insert(found.hazards.end(), outcome.hazards.begin(), outcome.hazards.end());
    if (!stops) continue;
    if (&step != &subject.steps().back() && found.incomplete.empty())
      found.incomplete = "the steps after '" + step.entry + "' were not run";
    return found;
  }
  for (Hazard& leak : subject.gpu().Leaks(subject.module())) {
    const auto same = std::ranges::find_if(
        found.hazards, [&](const Hazard& h) { return h.kind == leak.kind && h.where == leak.where; });
    if (same == found.hazards.end())
      found.hazards.push_back(std::move(leak));
    else
      ++same->count;
  }
  return found;
}

/// A race that was met from both of its sides is one hazard.
void JoinSides(std::vector<Hazard>& hazards) {
  const auto same = [](const Hazard::Site& a, const Hazard::Site& b) { return a.file == b.file && a.line == b.line; };
  for (size_t i = 0; i < hazards.size(); ++i) {
    if (!hazards[i].other) continue;
    for (size_t k = hazards.size() - 1; k > i; --k) {
      const Hazard& later = hazards[k];
      const bool mirrored = later.other && later.kernel == hazards[i].kernel && later.space == hazards[i].space &&
                            same(later.site, *hazards[i].other) && same(*later.other, hazards[i].site);
      if (!mirrored) continue;
      hazards[i].count += later.count;
      hazards.erase(hazards.begin() + static_cast<long>(k));
    }
  }
}

Json SiteJson(const Hazard::Site& site, SourceLines& source) {
  return {{"file", SourceLines::Short(site.file)},
          {"line", site.line},
          {"text", source.At(site.file, site.line)},
          {"block", site.block},
          {"thread", site.thread}};
}

Json HazardJson(const Hazard& hazard, SourceLines& source) {
  Json json = SiteJson(hazard.site, source);
  json["kind"] = Name(hazard.kind);
  json["check"] = CheckOf(hazard);
  json["kernel"] = hazard.kernel;
  json["what"] = hazard.detail;
  json["count"] = hazard.count;
  json["space"] = hazard.space.empty() ? Json() : Json(hazard.space);
  json["address"] = hazard.space.empty() ? Json() : Json(hazard.address);
  json["allocation"] = hazard.allocation.empty() ? Json() : Json(hazard.allocation);
  json["other"] = hazard.other ? SiteJson(*hazard.other, source) : Json();
  return json;
}

void PrintSite(const char* label, const Hazard::Site& site, SourceLines& source) {
  fmt::print("  {:<10} {}:{}  {}\n", label, site.file.empty() ? "PTX line" : SourceLines::Short(site.file), site.line,
             source.At(site.file, site.line));
}

void PrintHazard(const Hazard& hazard, SourceLines& source) {
  fmt::print("{} in {}{}\n", Name(hazard.kind), hazard.kernel,
             hazard.count > 1 ? fmt::format(", {} times", hazard.count) : "");
  PrintSite("at", hazard.site, source);
  if (hazard.other) PrintSite("and at", *hazard.other, source);
  fmt::print("  {:<10} {}\n", "what", hazard.detail);
  if (!hazard.allocation.empty() && hazard.detail.find(hazard.allocation) == std::string::npos)
    fmt::print("  {:<10} {}\n", "memory", hazard.allocation);
}

}  // namespace

Result<int> Sanitize(const SanitizeFlags& flags, const Common& common) {
  ATUNNER_TRY(const uint8_t groups, ParseChecks(flags.checks));
  ATUNNER_TRY(const Target target, TargetOf(flags.subject));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  ATUNNER_TRY(const Subject subject, LoadSubject(flags.subject, target, *compiler, common));
  ATUNNER_TRY(const auto device, SubjectOnDevice::Make(subject, target, *compiler));
  ATUNNER_TRY(Findings found, Examine(*device, flags, groups));
  JoinSides(found.hazards);
  for (Hazard& hazard : found.hazards) {
    if (const KernelResources* kernel = subject.candidate.module.Find(hazard.kernel)) hazard.kernel = kernel->entry;
  }
  SourceLines source(subject);
  const int exit_code = found.hazards.empty() && found.incomplete.empty() ? 0 : 1;
  const size_t shown = std::min(flags.max_reports, found.hazards.size());
  if (common.json) {
    Json json{{"kernel", subject.name},        {"configuration", subject.configuration},
              {"target", target.profile.name}, {"checks", flags.checks},
              {"blocks", found.blocks},        {"complete", found.incomplete.empty()},
              {"found", found.hazards.size()}, {"hazards", Json::array()}};
    for (size_t i = 0; i < shown; ++i) json["hazards"].push_back(HazardJson(found.hazards[i], source));
    PrintJson(json);
    return exit_code;
  }
  if (!common.quiet && !found.printed.empty()) fmt::print("{}", found.printed);
  for (size_t i = 0; i < shown; ++i) PrintHazard(found.hazards[i], source);
  if (shown < found.hazards.size()) fmt::print("… and {} more\n", found.hazards.size() - shown);
  if (!found.incomplete.empty()) fmt::print("not complete: {}\n", found.incomplete);
  fmt::print("{}: {} on {} blocks, virtual {}, checks: {}{}\n", subject.name,
             found.hazards.empty()       ? "no hazards"
             : found.hazards.size() == 1 ? "1 hazard"
                                         : fmt::format("{} hazards", found.hazards.size()),
             found.blocks, target.profile.name, flags.checks,
             subject.configuration.empty() ? "" : ", configuration: " + subject.configuration);
  return exit_code;
}

}  // namespace atunner::cli
