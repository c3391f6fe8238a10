#include "atunner/capture/applied.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "atunner/capture/records.h"

namespace atunner::capture {
namespace {

constexpr std::string_view kVerdicts[] = {"not compared", "equal", "within tolerance", "different"};

Verdict VerdictOf(const std::string& name) {
  const auto* at = std::ranges::find(kVerdicts, name);
  return at == std::end(kVerdicts) ? Verdict::kNotCompared
                                   : static_cast<Verdict>(at - std::begin(kVerdicts));
}

Json LaunchJson(const AppliedLaunch& launch) {
  return {
      {"kernel", launch.kernel},       {"configuration", ConfigurationJson(launch.configuration)},
      {"launches", launch.launches},   {"replaced", launch.replaced},
      {"in_graphs", launch.in_graphs}, {"verdict", Name(launch.verdict)},
      {"error", launch.error},         {"reason", launch.reason}};
}

AppliedLaunch LaunchOf(const Json& json) {
  return {json.at("kernel"),    ConfigurationOf(json.at("configuration")),
          json.at("launches"),  json.at("replaced"),
          json.at("in_graphs"), VerdictOf(json.at("verdict")),
          json.at("error"),     json.at("reason")};
}

AppliedReport ReportOf(const Json& json) {
  AppliedReport report;
  for (const Json& launch : json.at("launches")) report.launches.push_back(LaunchOf(launch));
  report.errors = json.at("errors").get<std::vector<std::string>>();
  return report;
}

void Merge(AppliedReport& all, const AppliedReport& one) {
  for (const AppliedLaunch& launch : one.launches) {
    const auto known = std::ranges::find_if(all.launches, [&](const AppliedLaunch& other) {
      return other.kernel == launch.kernel && other.configuration == launch.configuration;
    });
    if (known == all.launches.end()) {
      all.launches.push_back(launch);
      continue;
    }
    known->launches += launch.launches;
    known->replaced += launch.replaced;
    known->in_graphs += launch.in_graphs;
    known->error = std::max(known->error, launch.error);
    known->verdict = std::max(known->verdict, launch.verdict);
    if (known->reason.empty()) known->reason = launch.reason;
  }
  for (const std::string& error : one.errors) {
    if (std::ranges::find(all.errors, error) == all.errors.end()) all.errors.push_back(error);
  }
}

}  // namespace

std::string_view Name(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

Json ToJson(const ApplyOrder& order) {
  return {{"folders", order.folders},
          {"report", order.report},
          {"compared_bytes", order.compared_bytes}};
}

Result<ApplyOrder> ReadApplyOrder(const std::string& text) {
  ATUNNER_TRY(const Json json, ParseJson(text, kApplyVariable));
  try {
    ApplyOrder order;
    order.folders = json.at("folders").get<std::vector<std::string>>();
    order.report = json.value("report", "");
    order.compared_bytes = json.value("compared_bytes", order.compared_bytes);
    return order;
  } catch (const Json::exception& error) {
    return Invalid(error.what(), kApplyVariable);
  }
}

Json ToJson(const AppliedReport& report) {
  Json json{{"process", getpid()}, {"launches", Json::array()}, {"errors", report.errors}};
  for (const AppliedLaunch& launch : report.launches)
    json["launches"].push_back(LaunchJson(launch));
  return json;
}

void AppendReport(const ApplyOrder& order, const AppliedReport& report) {
  if (order.report.empty()) return;
  const std::string line = DumpJson(ToJson(report)) + "\n";
  const int file = open(order.report.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  (void)!write(file, line.data(), line.size());
  close(file);
}

Result<AppliedReport> ReadAppliedReport(const std::string& text) {
  std::map<int, AppliedReport> last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = ParseJson(line, "the program's report");
    if (!json) continue;  // a process was killed while it wrote
    try {
      last[json->at("process")] = ReportOf(*json);
    } catch (const Json::exception& error) {
      return Fail(ErrorCode::kInternal, error.what(), "the program's report");
    }
  }
  AppliedReport all;
  for (const auto& [process, report] : last) Merge(all, report);
  return all;
}

}  // namespace atunner::capture
