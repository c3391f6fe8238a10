#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "atunner/report/pictures.h"
#include "atunner/report/report.h"

namespace atunner {
namespace {

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6678; --line: #d9dee7; --paper:
  #ffffff; --panel: #f6f8fb; --accent: #0b6bcb; --good: #1a7f4b; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa5b8; --line: #333c4c;
  --paper: #12161d; --panel: #1a202b; --accent: #6db3ff; --good: #5bd08c; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin:
  0 auto; padding: 24px; max-width: 960px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 32px 0 8px; }
.lead, .soft { color: var(--soft); } code { font: 13px ui-monospace, monospace; overflow-wrap:
  anywhere; }
.word { border: 1px solid var(--accent); color: var(--accent); border-radius: 4px; padding: 0 6px; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: 5px 10px;
  border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.winner td { font-weight: 600; } .panel { background: var(--panel); border-radius: 8px; padding:
  12px 16px; }
.scroll { overflow-x: auto; max-height: 420px; overflow-y: auto; } svg { width: 100%; height:
  auto; } svg text { fill: var(--soft); font-size: 11px; }
svg .axis, svg .grid { fill: none; stroke: var(--line); } svg .roof { fill: none; stroke:
  var(--soft); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .best { fill: none; stroke: var(--accent); stroke-width: 2; } svg .trial { fill: var(--soft);
  opacity: .6; } svg .bad { fill: var(--bad); }
svg .winner { fill: var(--accent); } svg .baseline { fill: var(--soft); } .heat td, .heat th {
  text-align: center; padding: 6px; border: 1px solid var(--paper); }
.heat td { min-width: 52px; color: #111; } .heat td.none { color: var(--soft); background:
  var(--panel); } select { font: inherit; margin: 0 8px; }
.passed { color: var(--good); } .failed { color: var(--bad); }
)css";

// Fills the heatmap: for each pair of values of two parameters the best time of any trial that has
// them.
constexpr const char* kScript = R"js(
(function () {
  var data = JSON.parse(document.getElementById('trials').textContent);
  var first = document.getElementById('first'), second = document.getElementById('second');
  var table = document.getElementById('heat');
  data.parameters.forEach(function (parameter, i) {
    [first, second].forEach(function (select) {
      var option = document.createElement('option');
      option.value = i; option.textContent = parameter.name; select.appendChild(option);
    });
  });
  if (data.parameters.length > 1) second.value = 1;
  function cell(row, tag, text) {
    var c = document.createElement(tag);
    c.textContent = text;
    row.appendChild(c);
    return c;
  }
  function time(ns) {
    if (ns < 1e3) return ns.toFixed(0) + ' ns';
    return ns < 1e6 ? (ns / 1e3).toFixed(2) + ' us' : (ns / 1e6).toFixed(3) + ' ms';
  }
  function draw() {
    var a = +first.value, b = +second.value, best = {}, tried = {}, low = Infinity, high = 0;
    data.trials.forEach(function (trial) {
      var key = trial.at[a] + ',' + trial.at[b];
      tried[key] = (tried[key] || 0) + 1;
      if (trial.ns === null) return;
      if (!(best[key] <= trial.ns)) best[key] = trial.ns;
    });
    Object.keys(best).forEach(function (key) {
      low = Math.min(low, best[key]);
      high = Math.max(high, best[key]);
    });
    table.textContent = '';
    var head = document.createElement('tr');
    cell(head, 'th', data.parameters[a].name + ' \\ ' + data.parameters[b].name);
    data.parameters[b].values.forEach(function (value) { cell(head, 'th', value); });
    table.appendChild(head);
    data.parameters[a].values.forEach(function (value, i) {
      var row = document.createElement('tr');
      cell(row, 'th', value);
      data.parameters[b].values.forEach(function (_, j) {
        var key = i + ',' + j, ns = best[key];
        var c = cell(row, 'td', ns ? time(ns) : tried[key] ? 'rejected' : '');
        if (!ns) { c.className = 'none'; return; }
        var share = high > low ? Math.log(ns / low) / Math.log(high / low) : 0;
        c.style.background =
          'hsl(' + (140 - 130 * share) + ' 60% ' + (68 + 8 * share) + '%)';
        c.title = data.parameters[a].name + ' = ' + value + ', ' + data.parameters[b].name +
          ' = ' + data.parameters[b].values[j] + ': ' + tried[key] + ' trials';
      });
      table.appendChild(row);
    });
    table.setAttribute('data-drawn', Object.keys(best).length);
  }
  first.onchange = draw; second.onchange = draw; draw();
})();
)js";

std::string Row(std::initializer_list<std::string> cells, const char* kind = "") {
  std::string row = std::string("<tr") + (*kind ? fmt::format(" class=\"{}\"", kind) : "") + ">";
  size_t i = 0;
  for (const std::string& cell : cells)
    row += fmt::format("<td{}>{}</td>", i++ == 1 ? " class=\"number\"" : "", cell);
  return row + "</tr>\n";
}

/// How many times as slow as the best a baseline is, with the confidence interval if the two were
/// compared in pairs.
std::string RatioTo(std::optional<double> best, const Baseline& baseline) {
  if (const auto& comparison = baseline.comparison)
    return fmt::format("{:.2f} [{:.2f}, {:.2f}], {} pairs", comparison->ratio, comparison->low,
                       comparison->high, comparison->pairs);
  const auto ns = baseline.ObjectiveNs();
  return ns && best ? fmt::format("{:.2f}", *ns / *best) : "";
}

std::string Kernels(const Report& report) {
  const auto best = report.best ? report.best->ObjectiveNs() : std::nullopt;
  std::string html = fmt::format(
      "<table><tr><th>kernel</th><th class=\"number\">{}</th><th>rates</th><th>times as slow as "
      "the best</th></tr>\n",
      Name(report.evidence));
  for (const Baseline& baseline : report.baselines) {
    const auto ns = baseline.ObjectiveNs();
    html += Row({Escape(baseline.name), ns ? FormatTime(*ns) : "-",
                 Escape(ns ? RatesOf(report, *ns) : baseline.note), RatioTo(best, baseline)});
  }
  if (best) html += Row({"atunner", FormatTime(*best), RatesOf(report, *best), ""}, "winner");
  return html + "</table>\n" +
         (best ? "" : "<p class=\"failed\">No correct kernel was found.</p>\n");
}

std::string Asked(const Report& report) {
  std::string shapes;
  for (const ArgSpec& arg : report.spec.args) {
    const auto shape = ShapeOf(arg, report.spec, report.spec.dims);
    if (arg.role == Role::kScalar || !shape) continue;
    std::string extents;
    for (const int64_t extent : shape->extents)
      extents += (extents.empty() ? "" : " × ") + std::to_string(extent);
    shapes += fmt::format("{}<code>{}</code> {} {} [{}]", shapes.empty() ? "" : ", ",
                          Escape(arg.name), Name(arg.role), Name(arg.dtype), extents);
  }
  return fmt::format("<p>{}</p><p class=\"soft\"><code>{}</code></p>\n", shapes,
                     Escape(report.command));
}

std::string Parts(const Estimate& estimate) {
  std::string html =
      "<h2>Where the predicted time goes</h2>\n<table><tr><th>part</th><th "
      "class=\"number\">predicted</th><th></th></tr>\n";
  for (const Estimate::Part& part : estimate.parts)
    html += Row({Escape(part.name), FormatTime(part.ns),
                 part.overlapped ? "hidden behind another" : "counts"});
  return html + "</table>\n";
}

std::string Checks(const Verdict& verdict) {
  const std::string reservation = Reservation(verdict);
  std::string html = reservation.empty() ? ""
                                         : "<p><b>Note</b>: " + Escape(reservation) + ".</p>\n";
  if (!verdict.passed()) return html;
  html +=
      "<h2>How it was verified</h2>\n<div class=\"scroll\"><table><tr><th>check</th><th "
      "class=\"number\">error</th><th>bound</th><th>plain "
      "kernel</th><th>inputs</th><th></th></tr>\n";
  for (const CheckRecord& check : verdict.checks) {
    html += Row({Escape(check.check), fmt::format("{:.2e}", check.error),
                 fmt::format("{:.2e}", check.bound), fmt::format("{:.2e}", check.honest),
                 Escape(check.family + " " + ToString(check.dims)),
                 check.passed ? "<span class=\"passed\">passed</span>"
                              : "<span class=\"failed\">failed</span>"});
  }
  return html + "</table></div>\n";
}

std::string Best(const Report& report) {
  if (!report.best) return "";
  std::string html = fmt::format(
      "<h2>The best kernel</h2>\n<div class=\"panel\"><p><code>{}</code></p><ul>\n",
      Escape(report.best->candidate.Describe(report.space)));
  for (const std::string& sentence : WhyOf(report)) html += "<li>" + Escape(sentence) + "</li>\n";
  html += "</ul></div>\n";
  if (const auto& estimate = report.best->estimate) html += Parts(*estimate);
  return html + Checks(report.best->verdict);
}

std::string Rejected(const Report& report) {
  const std::vector<Rejection> all = RejectionsOf(report);
  if (all.empty()) return "<p>none</p>\n";
  std::string html =
      "<table><tr><th>verdict</th><th class=\"number\">trials</th><th>for example</th></tr>\n";
  for (const Rejection& one : all)
    html += Row(
        {Escape(one.verdict), std::to_string(one.count), Escape(one.example.substr(0, 400))});
  return html + "</table>\n";
}

std::string Front(const Report& report) {
  if (report.front.empty()) return "";
  std::string html =
      "<h2>Pareto front</h2>\n<div class=\"scroll\"><table><tr><th>time</th><th "
      "class=\"number\">memory</th>"
      "<th class=\"number\">energy</th><th>configuration</th></tr>\n";
  for (const auto& [time, memory, energy, configuration] : FrontRowsOf(report))
    html += Row({time, memory, energy, Escape(configuration)});
  return html + "</table></div>\n";
}

/// The position of each value of a configuration among the values of its parameter. A value that
/// the parameter does not have gets the position behind the last.
nlohmann::json PositionsOf(const Configuration& configuration, const ParameterSpace& space) {
  nlohmann::json positions = nlohmann::json::array();
  const size_t count = std::min(space.parameters.size(), configuration.values.size());
  for (size_t i = 0; i < count; ++i) {
    const std::vector<Value>& values = space.parameters[i].values;
    const auto at = std::ranges::find_if(
        values, [&](const Value& value) { return LooselyEqual(value, configuration.values[i]); });
    positions.push_back(at - values.begin());
  }
  return positions;
}

/// The parameters and trials as JSON, for the script of the heatmap. "<" is written as an escape
/// sequence, so that no text can end the script element.
std::string TrialData(const Report& report) {
  nlohmann::json data{{"parameters", nlohmann::json::array()}, {"trials", nlohmann::json::array()}};
  for (const Parameter& parameter : report.space.parameters) {
    nlohmann::json values = nlohmann::json::array();
    for (const Value& value : parameter.values) values.push_back(ToString(value));
    data["parameters"].push_back({{"name", parameter.name}, {"values", values}});
  }
  for (const Trial& trial : report.trials) {
    const auto ns = trial.ObjectiveNs();
    data["trials"].push_back(
        {{"at", PositionsOf(trial.configuration(), report.space)},
         {"ns", ns && std::isfinite(*ns) ? nlohmann::json(*ns) : nlohmann::json()}});
  }
  const std::string text = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) safe += c == '<' ? "\\u003c" : c == '&' ? "\\u0026" : std::string(1, c);
  return safe;
}

std::string Heatmap(const Report& report) {
  if (report.space.parameters.empty()) return "";
  return fmt::format(
      "<h2>Configuration and performance</h2>\n<p><label>rows<select "
      "id=\"first\"></select></label><label>columns<select id=\"second\"></select></label>"
      "<span class=\"soft\">best time of all trials with these values ({})</span></p>\n<div "
      "class=\"scroll\"><table "
      "class=\"heat\" id=\"heat\"></table></div>\n"
      "<script type=\"application/json\" "
      "id=\"trials\">{}</script>\n<script>//<![CDATA[\n{}//]]></script>\n",
      Name(report.evidence), TrialData(report), kScript);
}

std::string Picture(const char* title, const std::string& svg) {
  return svg.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, svg);
}

std::string Head(const std::string& title) {
  return "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta "
         "charset=\"utf-8\"/>"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>" +
         title + "</title><style>" + kStyle + "</style></head>";
}

}  // namespace

std::string RenderHtml(const Report& report) {
  const std::string title = fmt::format("{} on {}", Escape(report.spec.name),
                                        Escape(report.device));
  std::string html = Head(title) + "<body>\n";
  html += fmt::format(
      "<h1>{}</h1>\n<p class=\"lead\">Every time on this page is <span class=\"word\">{}</span>. "
      "Run <code>{}</code>, "
      "{}.</p>\n",
      title, Name(report.evidence), Escape(report.run), Escape(report.created));
  html += Asked(report) + Kernels(report);
  html += fmt::format(
      "<p class=\"soft\">{} trials of {} valid configurations in {:.1f} s; {}.</p>\n",
      report.trials.size(), report.space_size, report.seconds, Escape(report.stop_reason));
  html += Best(report) + Front(report) + Picture("Roofline", RooflinePicture(report)) +
          Picture("Convergence", ConvergencePicture(report)) + Heatmap(report);
  return html + "<h2>Rejected candidates</h2>\n" + Rejected(report) + "</body></html>\n";
}

}  // namespace atunner
