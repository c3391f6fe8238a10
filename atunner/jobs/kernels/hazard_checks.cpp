#include "atunner/jobs/kernels/hazard_checks.h"

#include <algorithm>
#include <sstream>

namespace atunner::jobs {
namespace {

constexpr std::pair<std::string_view, HazardGroup> kChecks[] = {{"memory", HazardGroup::kMemory},
                                                                {"init", HazardGroup::kInit},
                                                                {"race", HazardGroup::kRace},
                                                                {"sync", HazardGroup::kSync}};

}  // namespace

std::string_view CheckOf(const Hazard& hazard) {
  const auto at = std::ranges::find(kChecks, GroupOf(hazard.kind),
                                    &std::pair<std::string_view, HazardGroup>::second);
  return at->first;
}

Result<uint8_t> ParseChecks(const std::string& text) {
  auto groups = static_cast<uint8_t>(HazardGroup::kMemory);
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto at = std::ranges::find(kChecks, name,
                                      &std::pair<std::string_view, HazardGroup>::first);
    if (at == std::end(kChecks))
      return Invalid("there is no check '" + name + "'", "request.check " + text,
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

}  // namespace atunner::jobs
