#include "atunner/jobs/evidence/measured.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace atunner::jobs {

Result<std::vector<MeasuredProfile>> ReadNcu(const Path& file) {
  constexpr size_t kLargest = size_t{1} << 30;
  ATUNNER_TRY(const std::string text, ReadFile(file, kLargest));
  ATUNNER_TRY(std::vector<evidence::MeasuredLaunch> launches, evidence::ParseNcuCsv(text));
  std::vector<MeasuredProfile> profiles;
  for (evidence::MeasuredLaunch& launch : launches) {
    auto findings = evidence::Classify({launch.counters, "", nullptr});
    profiles.push_back({std::move(launch), std::move(findings)});
  }
  return profiles;
}

Json ToJson(const MeasuredProfile& profile) {
  Json json{{"kernel", profile.launch.kernel},
            {"counters", Json::array()},
            {"findings", Json::array()},
            {"rules", Json::array()}};
  for (const auto& [counter, value] : profile.launch.counters) {
    const evidence::CounterInfo& info = evidence::InfoOf(counter);
    json["counters"].push_back({{"name", info.name},
                                {"value", value.value},
                                {"unit", info.unit},
                                {"origin", evidence::Name(value.origin)}});
  }
  for (const evidence::Finding& finding : profile.findings)
    json["findings"].push_back(
        {{"bottleneck", evidence::Name(finding.bottleneck)}, {"evidence", finding.evidence}});
  for (const evidence::NcuRule& rule : profile.launch.rules)
    json["rules"].push_back(
        {{"name", rule.name}, {"text", rule.text}, {"speedup_percent", rule.speedup_percent}});
  return json;
}

}  // namespace atunner::jobs
