#include "atunner/jobs/system/system_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/planning/parallel/plan_text.h"
#include "atunner/report/pictures.h"

namespace atunner::jobs {
namespace {

std::string Header(const SystemResult& result) {
  return fmt::format("{} on {} x {}, objective {} (all times predicted)", result.request.model.name,
                     result.request.cluster.gpus, result.request.cluster.device.name,
                     Name(result.config.objective));
}

std::string KernelsLine(const SystemResult& result) {
  return fmt::format("{} kernels instead of {}, {:.1f} MB of memory traffic instead of {:.1f} MB",
                     result.kernels_after, result.kernels_before, result.bytes_after / 1e6,
                     result.bytes_before / 1e6);
}

std::string Cell(const std::string& text, const char* tag = "td") {
  return fmt::format("<{0}>{1}</{0}>", tag, Escape(text));
}

std::string Row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += Cell(cell, tag);
  return row + "</tr>\n";
}

/// A bar for each step: its time, as a share of the longest.
std::string StepsTable(const SystemResult& result) {
  double longest = 0;
  for (const SystemStep& step : result.steps) longest = std::max(longest, step.step_us);
  std::string table = "<table>\n" + Row({"step", "ms a step", "samples/s", "GB a GPU",
                                         "share of the gain", "what changes", ""},
                                        "th");
  for (const SystemStep& step : result.steps) {
    std::string row = Row({step.name, fmt::format("{:.2f}", step.step_us / 1e3),
                           fmt::format("{:.1f}", step.samples_per_second),
                           fmt::format("{:.1f}", step.bytes / 1e9),
                           fmt::format("{:.0f} %", 100 * step.share), step.reason});
    row.insert(row.rfind("</tr>"),
               fmt::format("<td class=\"bar\"><div style=\"width:{:.0f}%\"></div></td>",
                           longest > 0 ? 100 * step.step_us / longest : 0));
    table += row;
  }
  return table + "</table>\n";
}

std::string HotTable(const SystemResult& result) {
  std::string table = "<table>\n" + Row({"kernel", "us", "share"}, "th");
  for (const HotKernel& kernel : result.hot)
    table += Row({kernel.name, fmt::format("{:.1f}", kernel.us),
                  fmt::format("{:.1f} %", 100 * kernel.share)});
  return table + "</table>\n";
}

std::string ChangesTable(const SystemResult& result) {
  std::string table = "<table>\n" + Row({"setting", "today", "planned"}, "th");
  for (const SettingChange& change : result.changes)
    table += Row({change.key, change.before, change.after});
  return table + "</table>\n";
}

constexpr char kStyle[] =
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;"
    "margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;margin:.5rem 0 1.5rem}"
    "th,td{text-align:left;padding:.2rem .8rem;border-bottom:1px solid #8885}"
    "td.bar{min-width:12rem}td.bar div{height:.8rem;background:#3a7bd5}pre{white-space:pre-wrap}";

}  // namespace

std::string TextOf(const SystemResult& result) {
  std::string text = Header(result) + "\n";
  text += result.explanation + "\n\n";
  text += fmt::format("{:<20}{:>12}{:>14}{:>10}{:>9}  {}\n", "step", "ms a step", "samples/s",
                      "GB a GPU", "share", "what changes");
  for (const SystemStep& step : result.steps)
    text += fmt::format("{:<20}{:>12.2f}{:>14.1f}{:>10.1f}{:>8.0f}%  {}\n", step.name,
                        step.step_us / 1e3, step.samples_per_second, step.bytes / 1e9,
                        100 * step.share, step.reason);
  if (result.kernels_before > 0) text += "\nfusion: " + KernelsLine(result) + "\n";
  for (const HotKernel& kernel : result.hot)
    text += fmt::format("  {:>9.1f} us {:>6.1f} %  {}\n", kernel.us, 100 * kernel.share,
                        kernel.name);
  text += "\nsettings\n";
  for (const SettingChange& change : result.changes)
    text += fmt::format("  {}: {} -> {}\n", change.key, change.before, change.after);
  for (const std::string& note : result.notes) text += "note: " + note + "\n";
  return text;
}

Json ToJson(const SystemResult& result) {
  Json json{{"objective", Name(result.config.objective)}, {"explanation", result.explanation}};
  json["plan"] = planning::ToJson(result.request, planning::ParallelPlans{.best = result.plan});
  json["steps"] = Json::array();
  for (const SystemStep& step : result.steps)
    json["steps"].push_back({{"name", step.name},
                             {"reason", step.reason},
                             {"share", step.share},
                             {"predicted",
                              {{"step_us", step.step_us},
                               {"samples_per_second", step.samples_per_second},
                               {"bytes", step.bytes}}}});
  json["hot_kernels"] = Json::array();
  for (const HotKernel& kernel : result.hot)
    json["hot_kernels"].push_back(
        {{"name", kernel.name}, {"predicted_us", kernel.us}, {"share", kernel.share}});
  json["fusion"] = {{"kernels_before", result.kernels_before},
                    {"kernels_after", result.kernels_after},
                    {"bytes_before", result.bytes_before},
                    {"bytes_after", result.bytes_after}};
  json["changes"] = Json::array();
  for (const SettingChange& change : result.changes)
    json["changes"].push_back(
        {{"key", change.key}, {"before", change.before}, {"after", change.after}});
  json["notes"] = result.notes;
  return json;
}

std::string PageOf(const SystemResult& result, const std::string& measured) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n<pre>{2}</pre>\n",
      Escape(Header(result)), kStyle, Escape(result.explanation));
  if (!measured.empty()) page += "<h2>Measured changes</h2>\n<pre>" + Escape(measured) + "</pre>\n";
  page += "<h2>Steps</h2>\n" + StepsTable(result);
  if (!result.hot.empty())
    page += "<h2>Kernels</h2>\n<p>" + Escape(KernelsLine(result)) + "</p>\n" + HotTable(result);
  page += "<h2>Settings</h2>\n" + ChangesTable(result);
  page += "<h2>Notes</h2>\n<ul>\n";
  for (const std::string& note : result.notes) page += "<li>" + Escape(note) + "</li>\n";
  return page + "</ul>\n</body></html>\n";
}

std::string SystemKeysText() {
  std::string text;
  for (const SystemKey& key : SystemKeys())
    text += fmt::format("{:<26}{:<10}{}\n", key.key, key.required ? "required" : "", key.meaning);
  return text;
}

}  // namespace atunner::jobs
