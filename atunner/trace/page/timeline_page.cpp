#include "atunner/trace/page/timeline_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "atunner/model/json/json.h"
#include "atunner/trace/findings/measures.h"
#include "atunner/trace/page/page_rows.h"
#include "embed/timeline_page.h"

namespace atunner::trace {
namespace {

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// The text as a sentence: a capital at its beginning.
std::string Sentence(std::string_view text) {
  std::string sentence = Escaped(text);
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return sentence;
}

/// JSON inside <script> must not contain "</script>" or "<!--".
std::string ScriptJson(const Json& json) {
  std::string out;
  for (const char c : DumpJson(json)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

template <class T>
std::string Column(std::string_view id, const std::vector<T>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(T));
  return fmt::format("<script type=\"application/octet-stream\" id=\"{}\">{}</script>\n", id,
                     Base64Encode(bytes));
}

Json MetaJson(const PageRows& rows, std::span<const Analysis> analyses) {
  Json tracks = Json::array(), steps = Json::array(), colors = Json::array();
  for (const PageTrack& track : rows.tracks)
    tracks.push_back({{"name", track.name}, {"rows", track.rows}});
  bool odd = false;
  for (const Interval& step : analyses[0].iterations.at)
    steps.push_back({step.begin - rows.origin, step.end - rows.origin, odd = !odd});
  for (const auto& [color, meaning] : Palette()) colors.push_back(color);
  return {{"length", rows.length}, {"tracks", tracks},          {"steps", steps},
          {"names", rows.names},   {"nameColors", rows.colors}, {"colors", colors}};
}

struct Part {
  std::string title;
  int64_t time;
  const char* color;
};

std::vector<Part> PartsOf(const DeviceTime& time) {
  static constexpr std::array<const char*, kIdleCauses> kColors = {"#d98c1f", "#a8442f", "#8f6b1d",
                                                                   "#77663f", "#b0479b", "#7f6bc4",
                                                                   "#5f7d8c", "#8fa3ad", "#b8bfc6"};
  std::vector<Part> parts{{"computing", time.compute, "#2f6fde"},
                          {"exposed communication", time.exposed_communication, "#c8442f"},
                          {"exposed copies", time.exposed_copies, "#b07d12"}};
  for (size_t cause = 0; cause < kIdleCauses; ++cause)
    parts.push_back({fmt::format("idle: {}", Title(static_cast<IdleCause>(cause))),
                     time.idle[cause], kColors[cause]});
  std::erase_if(parts, [](const Part& part) { return part.time == 0; });
  return parts;
}

std::string BreakdownHtml(const Analysis& analysis) {
  std::string html;
  for (const DeviceTime& time : analysis.times.devices) {
    const auto window = static_cast<double>(std::max<int64_t>(1, time.window));
    std::string bar, legend;
    for (const Part& part : PartsOf(time)) {
      const double share = static_cast<double>(part.time) / window;
      bar += fmt::format("<div style=\"width:{:.3f}%;background:{}\" title=\"{}\"></div>",
                         100 * share, part.color, part.title);
      legend += fmt::format("<span><i style=\"background:{}\"></i>{} {} ({})</span>", part.color,
                            part.title, Percent(share), Duration(static_cast<double>(part.time)));
    }
    const std::string rank = analysis.timeline->rank >= 0
                                 ? fmt::format("rank {} ", analysis.timeline->rank)
                                 : "";
    html += fmt::format(
        "<p>{}GPU {}</p><div class=\"bar\">{}</div><div class=\"legend\">{}</div>\n", rank,
        time.device, bar, legend);
  }
  return html;
}

std::string FindingsHtml(std::span<const Finding> findings) {
  if (findings.empty()) return "<p class=\"soft\">No rule found anything.</p>\n";
  std::string html;
  for (const Finding& finding : findings) {
    const std::string gain = finding.gain > 0 ? fmt::format("<span class=\"gain\">up to {}</span>",
                                                            Percent(finding.gain))
                                              : "";
    html += fmt::format(
        "<div class=\"finding\">{}<b>{}</b><br>{}.<br><span class=\"soft\">{}.</span>"
        "</div>\n",
        gain, Escaped(finding.title), Sentence(finding.evidence), Sentence(finding.action));
  }
  return html;
}

std::string KernelsHtml(const Analysis& analysis) {
  std::string html =
      "<table><tr><th class=\"number\">share</th><th class=\"number\">total</th><th "
      "class=\"number\">launches</th><th class=\"number\">median</th><th>class</th>"
      "<th>kernel</th></tr>\n";
  constexpr size_t kShown = 30;
  for (size_t i = 0; i < std::min(kShown, analysis.tables.kernels.size()); ++i) {
    const KernelRow& row = analysis.tables.kernels[i];
    html += fmt::format(
        "<tr><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td><td>{}{}</td><td><code>{}</code></td></tr>\n",
        Percent(row.share), Duration(static_cast<double>(row.total)), row.count,
        Duration(static_cast<double>(row.median)), Name(row.kernel_class),
        row.tensor_cores ? ", tensor cores" : "", Escaped(analysis.timeline->strings[row.name]));
  }
  return html + "</table>\n";
}

std::string LegendHtml() {
  std::string html = "<div class=\"legend\">";
  for (const auto& [color, meaning] : Palette())
    html += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", color, meaning);
  return html + "</div>\n";
}

}  // namespace

std::string TimelinePage(std::span<const Analysis> analyses, std::span<const Finding> findings) {
  const PageRows rows = LayOut(analyses);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<title>Timeline</title>\n"
      "<style>{}</style>\n<h1>Timeline</h1>\n<p class=\"soft\">{}{} · {} events</p>\n",
      embed::kTimelinePageCss, Escaped(analyses[0].timeline->source),
      analyses.size() > 1 ? fmt::format(" and {} more", analyses.size() - 1) : "",
      rows.start.size());
  html += "<h2>Where the time goes</h2>\n";
  for (const Analysis& analysis : analyses) html += BreakdownHtml(analysis);
  html += "<h2>Tracks</h2>\n" + LegendHtml();
  html +=
      "<div id=\"controls\"><input id=\"search\" placeholder=\"search names\"><span id=\"found\" "
      "class=\"soft\"></span><span class=\"soft\">wheel or w, s: zoom · drag or a, d: move · "
      "double "
      "click: everything</span></div>\n"
      "<div id=\"frame\"><canvas id=\"tracks\"></canvas><div id=\"tip\"></div></div>\n";
  html += "<h2>Advice</h2>\n" + FindingsHtml(findings);
  html += "<h2>Kernels</h2>\n" + KernelsHtml(analyses[0]);
  html += fmt::format("<script type=\"application/json\" id=\"meta\">{}</script>\n",
                      ScriptJson(MetaJson(rows, analyses)));
  html += Column("start", rows.start) + Column("duration", rows.duration) +
          Column("name", rows.name);
  html += fmt::format("<script>{}</script>\n</html>\n", embed::kTimelinePageJs);
  return html;
}

}  // namespace atunner::trace
