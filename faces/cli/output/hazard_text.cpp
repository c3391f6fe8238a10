#include "faces/cli/output/hazard_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/jobs/kernels/hazard_checks.h"
#include "faces/cli/output/render.h"

namespace atunner::cli {
namespace {

Json SiteJson(const Hazard::Site& site, SourceLines& source) {
  return {{"file", SourceLines::Short(site.file)},
          {"line", site.line},
          {"text", source.At(site.file, site.line)},
          {"block", site.block},
          {"thread", site.thread}};
}

void PrintSite(const char* label, const Hazard::Site& site, SourceLines& source) {
  fmt::print("  {:<10} {}:{}  {}\n", label,
             site.file.empty() ? "PTX line" : SourceLines::Short(site.file), site.line,
             Printable(source.At(site.file, site.line)));
}

}  // namespace

Json HazardJson(const Hazard& hazard, SourceLines& source) {
  Json json = SiteJson(hazard.site, source);
  json["kind"] = Name(hazard.kind);
  json["check"] = jobs::CheckOf(hazard);
  json["kernel"] = hazard.kernel;
  json["what"] = hazard.detail;
  json["count"] = hazard.count;
  json["space"] = hazard.space.empty() ? Json() : Json(hazard.space);
  json["address"] = hazard.space.empty() ? Json() : Json(hazard.address);
  json["allocation"] = hazard.allocation.empty() ? Json() : Json(hazard.allocation);
  json["other"] = hazard.other ? SiteJson(*hazard.other, source) : Json();
  return json;
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

std::string HowMany(size_t hazards) {
  if (hazards == 0) return "no hazards";
  return hazards == 1 ? "1 hazard" : fmt::format("{} hazards", hazards);
}

std::string HazardSummary(const LaunchOutcome& outcome, bool checked) {
  const bool ended = outcome.kind == LaunchOutcome::Kind::kCompleted || !outcome.hazards.empty();
  if (!checked) return outcome.completed() ? "completed, nothing was checked" : outcome.message;
  return fmt::format("{} on {} blocks", ended ? HowMany(outcome.hazards.size()) : outcome.message,
                     outcome.blocks_executed);
}

}  // namespace atunner::cli
