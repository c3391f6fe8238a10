#include "faces/program/findings.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace atunner::program {
namespace {

Json SiteJson(const Hazard::Site& site) { return {site.file, site.line, site.block, site.thread}; }

Hazard::Site ReadSite(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3)}; }

Json HazardJson(const Hazard& hazard) {
  Json json{{"kind", static_cast<int>(hazard.kind)},
            {"kernel", hazard.kernel},
            {"where", hazard.where},
            {"detail", hazard.detail},
            {"site", SiteJson(hazard.site)},
            {"space", hazard.space},
            {"address", hazard.address},
            {"allocation", hazard.allocation},
            {"count", hazard.count}};
  if (hazard.other) json["other"] = SiteJson(*hazard.other);
  return json;
}

Hazard ReadHazard(const Json& json) {
  Hazard hazard;
  hazard.kind = static_cast<Hazard::Kind>(json.at("kind").get<int>());
  hazard.kernel = json.at("kernel");
  hazard.where = json.at("where");
  hazard.detail = json.at("detail");
  hazard.site = ReadSite(json.at("site"));
  hazard.space = json.at("space");
  hazard.address = json.at("address");
  hazard.allocation = json.at("allocation");
  hazard.count = json.at("count");
  if (json.contains("other")) hazard.other = ReadSite(json.at("other"));
  return hazard;
}

bool SameLocation(const Hazard& a, const Hazard& b) {
  const auto same = [](const Hazard::Site& x, const Hazard::Site& y) {
    return x.file == y.file && x.line == y.line;
  };
  return a.kind == b.kind && a.kernel == b.kernel && same(a.site, b.site) &&
         a.other.has_value() == b.other.has_value() && (!a.other || same(*a.other, *b.other));
}

Findings ReadFindings(const Json& json) {
  Findings findings;
  findings.launches = json.at("launches");
  findings.blocks = json.at("blocks");
  for (const Json& hazard : json.at("hazards")) findings.hazards.push_back(ReadHazard(hazard));
  findings.errors = json.at("errors");
  return findings;
}

}  // namespace

Json ToJson(const Order& order) {
  Json json{{"profile", ToJson(order.profile)},
            {"groups", order.groups},
            {"timeout_seconds", order.timeout_seconds},
            {"recorded_launch_seconds", order.recorded_launch_seconds},
            {"recorded_seconds", order.recorded_seconds},
            {"quiet_seconds", order.quiet_seconds},
            {"max_instructions", order.max_instructions},
            {"report", order.report}};
  if (order.capture) json["capture"] = DumpJson(capture::ToJson(*order.capture));
  if (order.apply) json["apply"] = DumpJson(capture::ToJson(*order.apply));
  return json;
}

Result<Order> ReadOrder(const std::string& text) {
  ATUNNER_TRY(const Json json, ParseJson(text, kOrderVariable));
  try {
    Order order;
    ATUNNER_TRY(order.profile, FromJson<DeviceProfile>(json.at("profile")));
    order.groups = json.at("groups");
    order.timeout_seconds = json.at("timeout_seconds");
    order.recorded_launch_seconds = json.at("recorded_launch_seconds");
    order.recorded_seconds = json.at("recorded_seconds");
    order.quiet_seconds = json.value("quiet_seconds", order.quiet_seconds);
    order.max_instructions = json.at("max_instructions");
    order.report = json.at("report");
    if (json.contains("capture")) {
      ATUNNER_TRY(order.capture, capture::ReadRecordOrder(json.at("capture").get<std::string>()));
    }
    if (json.contains("apply")) {
      ATUNNER_TRY(order.apply, capture::ReadApplyOrder(json.at("apply").get<std::string>()));
    }
    return order;
  } catch (const Json::exception& error) {
    return Invalid(error.what(), kOrderVariable);
  }
}

bool Findings::Add(Hazard hazard) {
  const auto known = std::ranges::find_if(hazards,
                                          [&](const Hazard& h) { return SameLocation(h, hazard); });
  if (known != hazards.end()) {
    known->count += hazard.count;
    return false;
  }
  hazards.push_back(std::move(hazard));
  return true;
}

bool Findings::AddError(const std::string& error) {
  if (std::ranges::find(errors, error) != errors.end()) return false;
  errors.push_back(error);
  return true;
}

void Findings::Merge(const Findings& other) {
  launches += other.launches;
  blocks += other.blocks;
  for (const Hazard& hazard : other.hazards) Add(hazard);
  for (const std::string& error : other.errors) AddError(error);
}

Json ToJson(const Findings& findings) {
  Json json{{"process", getpid()},
            {"launches", findings.launches},
            {"blocks", findings.blocks},
            {"hazards", Json::array()},
            {"errors", findings.errors}};
  for (const Hazard& hazard : findings.hazards) json["hazards"].push_back(HazardJson(hazard));
  return json;
}

Result<Findings> ReadReport(const std::string& text) {
  std::map<int, Findings> last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = ParseJson(line, "the program's report");
    if (!json) continue;  // a process was killed while it wrote
    try {
      last[json->at("process")] = ReadFindings(*json);
    } catch (const Json::exception& error) {
      return Fail(ErrorCode::kInternal, error.what(), "the program's report");
    }
  }
  Findings all;
  for (const auto& [process, findings] : last) all.Merge(findings);
  return all;
}

}  // namespace atunner::program
