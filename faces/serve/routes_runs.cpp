// Runs and trials of the store.
#include <charconv>

#include "atunner/base/digest.h"
#include "atunner/jobs/runs/reports.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

http::Response Answered(const Call& call, const Result<Json>& json) {
  if (!json) return ProblemOf(json.error(), call.request_id);
  return JsonResponse(200, *json);
}

/// With the digest of the answer as its version.
http::Response Versioned(const Call& call, const Result<Json>& json) {
  if (!json) return ProblemOf(json.error(), call.request_id);
  const std::string text = DumpJson(*json);
  return WithETag(call, DigestOf(text).ToHex(), [&] { return text; });
}

Result<platform::RunQuery> RunQueryOf(const Call& call) {
  platform::RunQuery query{call.Text("status"), call.Text("q")};
  ATUNNER_TRY(query.limit, call.Integer("limit", 100, 1, 1000));
  ATUNNER_TRY(query.offset, call.Integer("offset", 0, 0, 1'000'000'000));
  return query;
}

http::Response ListRuns(Call& call) {
  const auto query = RunQueryOf(call);
  if (!query) return ProblemOf(query.error(), call.request_id);
  return Answered(call, call.context.pages.Runs(*query));
}

http::Response GetRun(Call& call) {
  return Versioned(call, call.context.pages.Run(call.Segment(0)));
}

Result<platform::TrialQuery> TrialQueryOf(const Call& call) {
  platform::TrialQuery query;
  ATUNNER_TRY(query.limit, call.Integer("limit", 100, 1, 10000));
  ATUNNER_TRY(query.offset, call.Integer("offset", 0, 0, 1'000'000'000));
  ATUNNER_TRY(query.min_ns, call.Number("min_ns"));
  ATUNNER_TRY(query.max_ns, call.Number("max_ns"));
  query.sort = call.url.Find("sort").value_or("number");
  query.verdict = call.Text("verdict");
  query.proposer = call.Text("proposer");
  for (const auto& [name, value] : call.url.query) {
    if (name.starts_with("p.")) query.parameters.emplace_back(name.substr(2), value);
  }
  if (query.parameters.size() > 100) return Invalid("more than 100 conditions", "p.NAME");
  return query;
}

http::Response ListTrials(Call& call) {
  const auto query = TrialQueryOf(call);
  if (!query) return ProblemOf(query.error(), call.request_id);
  return Answered(call, call.context.pages.Trials(call.Segment(0), *query));
}

http::Response GetTrial(Call& call) {
  const std::string& text = call.Segment(1);
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end)
    return Problem(404, "'" + text + "' is no number of a trial", call.request_id);
  return Versioned(call, call.context.pages.Trial(call.Segment(0), number));
}

http::Response GetReport(Call& call) {
  using enum jobs::ReportRequest::Format;
  struct Kind {
    std::string_view name;
    jobs::ReportRequest::Format format;
    const char* type;
  };
  static constexpr Kind kKinds[] = {{"html", kHtml, "text/html; charset=utf-8"},
                                    {"md", kMarkdown, "text/markdown; charset=utf-8"},
                                    {"json", kJson, "application/json"}};
  const std::string wanted = call.url.Find("format").value_or("html");
  for (const Kind& kind : kKinds) {
    if (kind.name != wanted) continue;
    const auto text = jobs::MakeReportText({call.Segment(0), kind.format}, call.context.services);
    if (!text) return ProblemOf(text.error(), call.request_id);
    http::Response response;
    response.headers.Set("Content-Type", kind.type);
    response.headers.Set("Content-Security-Policy",
                         "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                         "frame-ancestors 'self'; sandbox");
    response.body = *text;
    return response;
  }
  return ProblemOf(Invalid("unknown format", "format", "use html, md or json").error(),
                   call.request_id);
}

}  // namespace

std::vector<Route> RunRoutes() {
  using platform::kRead;
  return {{"GET", "/api/v1/runs", kRead, BodyKind::kNone, ListRuns},
          {"GET", "/api/v1/runs/{id}", kRead, BodyKind::kNone, GetRun},
          {"GET", "/api/v1/runs/{id}/report", kRead, BodyKind::kNone, GetReport},
          {"GET", "/api/v1/runs/{id}/trials", kRead, BodyKind::kNone, ListTrials},
          {"GET", "/api/v1/runs/{id}/trials/{number}", kRead, BodyKind::kNone, GetTrial}};
}

}  // namespace atunner::serve
