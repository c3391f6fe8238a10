#include "atunner/mcp/tools/results.h"

#include <algorithm>
#include <sstream>

#include "atunner/report/report.h"

namespace atunner::mcp {
namespace {

constexpr size_t kMostFailedChecks = 5;
constexpr size_t kMostReasonBytes = 4000;

std::string LineOf(const std::string& text, uint32_t number) {
  std::istringstream lines(text);
  std::string line;
  for (uint32_t i = 0; i < number; ++i) {
    if (!std::getline(lines, line)) return "";
  }
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first);
}

Json SiteJson(const Hazard::Site& site, const std::string& source) {
  return {{"line", site.line},
          {"text", site.file.empty() ? "" : LineOf(source, site.line)},
          {"file", Path(site.file).filename().string()},
          {"block", site.block},
          {"thread", site.thread}};
}

Json HazardJson(const Hazard& hazard, const std::string& source) {
  Json json{{"kind", Name(hazard.kind)},
            {"kernel", hazard.kernel},
            {"what", hazard.detail},
            {"count", hazard.count},
            {"at", SiteJson(hazard.site, source)}};
  if (!hazard.allocation.empty()) json["memory"] = hazard.allocation;
  if (hazard.other) json["and_at"] = SiteJson(*hazard.other, source);
  return json;
}

}  // namespace

Json VerdictJson(const Verdict& verdict) {
  Json json{{"verdict", Name(verdict.kind)},
            {"passed", verdict.passed()},
            {"reason", verdict.reason.substr(0, kMostReasonBytes)},
            {"checks", verdict.checks.size()},
            {"worst_error", verdict.WorstError()},
            {"failed", Json::array()}};
  if (const std::string reservation = Reservation(verdict);
      verdict.stands() && !reservation.empty())
    json["reservation"] = reservation;
  for (const CheckRecord& check : verdict.checks) {
    if (check.passed || json["failed"].size() >= kMostFailedChecks) continue;
    json["failed"].push_back({{"check", check.check},
                              {"inputs", check.family},
                              {"size", ToString(check.dims)},
                              {"error", check.error},
                              {"bound", check.bound},
                              {"detail", check.detail}});
  }
  return json;
}

Json ExaminationJson(const jobs::Examination& found) {
  Json json = VerdictJson(found.verdict);
  json["configuration"] = found.configuration;
  json["evidence"] = Name(found.evidence);
  json["kernels"] = ResourcesJson(found.resources);
  if (const auto ns = found.Ns()) json["ns"] = *ns;
  if (found.estimate) json["limiter"] = found.estimate->limiter;
  return json;
}

Json HazardsJson(const std::vector<Hazard>& hazards, const std::string& source, size_t most) {
  Json json{{"found", hazards.size()}, {"hazards", Json::array()}};
  for (size_t i = 0; i < std::min(most, hazards.size()); ++i)
    json["hazards"].push_back(HazardJson(hazards[i], source));
  return json;
}

Json ResourcesJson(const std::vector<KernelResources>& kernels) {
  Json json = Json::array();
  for (const KernelResources& kernel : kernels)
    json.push_back({{"kernel", kernel.entry},
                    {"registers", kernel.registers},
                    {"static_shared_bytes", kernel.static_shared_bytes},
                    {"local_bytes", kernel.local_bytes},
                    {"spill_bytes", kernel.spill_store_bytes + kernel.spill_load_bytes},
                    {"max_threads", kernel.max_threads}});
  return json;
}

}  // namespace atunner::mcp
