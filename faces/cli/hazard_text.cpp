#include "faces/cli/hazard_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace atunner::cli {
namespace {

constexpr std::pair<std::string_view, HazardGroup> kChecks[] = {{"memory", HazardGroup::kMemory},
                                                                {"init", HazardGroup::kInit},
                                                                {"race", HazardGroup::kRace},
                                                                {"sync", HazardGroup::kSync}};

std::string_view CheckOf(const Hazard& hazard) {
  const auto at = std::ranges::find(kChecks, GroupOf(hazard.kind),
                                    &std::pair<std::string_view, HazardGroup>::second);
  return at->first;
}

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
             source.At(site.file, site.line));
}

}  // namespace

Result<uint8_t> ParseChecks(const std::string& text) {
  auto groups = static_cast<uint8_t>(HazardGroup::kMemory);
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto at = std::ranges::find(kChecks, name,
                                      &std::pair<std::string_view, HazardGroup>::first);
    if (at == std::end(kChecks))
      return Invalid("there is no check '" + name + "'", "--check " + text,
                     "use any of memory, init, race, sync");
    groups |= static_cast<uint8_t>(at->second);
  }
  return groups;
}

LaunchOptions OptionsOfChecks(uint8_t groups, double timeout_seconds, uint64_t max_instructions) {
  LaunchOptions options;
  options.check_hazards = groups != static_cast<uint8_t>(HazardGroup::kMemory);
  options.check_global = options.keep_going = true;
  options.groups = groups;
  options.timeout_seconds = timeout_seconds;
  options.max_warp_instructions_per_block = max_instructions;
  return options;
}

void JoinSides(std::vector<Hazard>& hazards) {
  const auto same = [](const Hazard::Site& a, const Hazard::Site& b) {
    return a.file == b.file && a.line == b.line;
  };
  for (size_t i = 0; i < hazards.size(); ++i) {
    if (!hazards[i].other) continue;
    for (size_t k = hazards.size() - 1; k > i; --k) {
      const Hazard& later = hazards[k];
      const bool mirrored = later.other && later.kernel == hazards[i].kernel &&
                            later.space == hazards[i].space &&
                            same(later.site, *hazards[i].other) &&
                            same(*later.other, hazards[i].site);
      if (!mirrored) continue;
      hazards[i].count += later.count;
      hazards.erase(hazards.begin() + static_cast<long>(k));
    }
  }
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

std::string Verdict(const LaunchOutcome& outcome, bool checked) {
  const bool ended = outcome.kind == LaunchOutcome::Kind::kCompleted || !outcome.hazards.empty();
  if (!checked) return outcome.completed() ? "completed, nothing was checked" : outcome.message;
  return fmt::format("{} on {} blocks", ended ? HowMany(outcome.hazards.size()) : outcome.message,
                     outcome.blocks_executed);
}

}  // namespace atunner::cli
