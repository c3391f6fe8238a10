// `timeline`: where the time of a recorded run goes, and what to do about it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "atunner/trace/page/timeline_page.h"
#include "atunner/trace/timeline_report.h"
#include "atunner/trace/trace_comparison.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/output/render.h"
#include "faces/cli/output/timeline_text.h"
#include "faces/cli/planning/planning_verbs.h"

namespace atunner::cli {
namespace {

struct TimelineFlags {
  std::string path;
  std::string before;
  std::string html;
  int rows = 15;
};

/// The exit code of --compare when the trace is slower than the one before.
constexpr int kSlower = 1;

Result<int> ShowTimeline(const TimelineFlags& flags, const Context& context) {
  ATUNNER_TRY(const trace::TimelineReport report, trace::ReportTimeline(flags.path));
  std::optional<trace::TraceComparison> comparison;
  if (!flags.before.empty()) {
    ATUNNER_TRY(const trace::TimelineReport before, trace::ReportTimeline(flags.before));
    comparison = trace::Compare(before, report);
  }
  if (!flags.html.empty())
    ATUNNER_RETURN_IF_ERROR(
        WriteFileAtomic(flags.html, trace::TimelinePage(report.analyses, report.findings)));
  if (context.common.json) {
    Json json = trace::ToJson(report);
    if (comparison) json["comparison"] = trace::ToJson(*comparison);
    PrintJson(json);
  } else {
    fmt::print("{}", Printable(RenderTimeline(report, static_cast<size_t>(flags.rows))));
    if (comparison) fmt::print("{}", Printable(RenderComparison(*comparison)));
    if (!flags.html.empty()) fmt::print("\npage: {}\n", flags.html);
  }
  return comparison && comparison->verdict == trace::TraceVerdict::kSlower ? kSlower : 0;
}

}  // namespace

void AddTimeline(VerbList& verbs) {
  const auto flags = std::make_shared<TimelineFlags>();
  CLI::App* verb = verbs.Add("timeline", "where the time of a recorded run goes, and what to do",
                             [flags](const Context& c) { return ShowTimeline(*flags, c); });
  verb->footer(
      "atunner timeline trace.json.gz\n"
      "atunner timeline report.sqlite --html timeline.html\n"
      "atunner timeline traces-of-all-ranks/\n"
      "atunner timeline after.json --compare before.json    # exit status 1 if it is slower");
  verb->add_option("trace", flags->path,
                   "JSON of PyTorch's profiler (also .gz), SQLite export of nsys, or a folder with "
                   "one of these for each rank")
      ->required();
  verb->add_option("--compare", flags->before, "the trace, or folder, before a change");
  verb->add_option("--html", flags->html, "also write a page with a timeline to zoom into");
  verb->add_option("--rows", flags->rows, "rows of each table")->check(Positive());
}

}  // namespace atunner::cli
