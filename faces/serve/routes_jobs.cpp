// Jobs: submit, list, look, cancel, watch.
#include <fmt/format.h>

#include <charconv>
#include <string>
#include <utility>

#include "atunner/platform/job_request.h"
#include "faces/serve/job_json.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

constexpr size_t kLongestKey = 200;

http::Response FieldProblems(const std::vector<platform::FieldProblem>& problems,
                             const std::string& request_id) {
  std::string detail = problems.size() == 1 ? problems[0].field + ": " + problems[0].detail
                                            : fmt::format("{} fields are wrong", problems.size());
  return Problem(422, detail, request_id, problems);
}

Result<queue::Submission> SubmissionOf(const Call& call, const Json& body,
                                       const platform::JobRequest& request) {
  queue::Submission submission;
  submission.key = call.request.headers.Get("Idempotency-Key");
  if (submission.key.size() > kLongestKey)
    return Invalid(fmt::format("has more than {} bytes", kLongestKey),
                   std::string(queue::kKeyField));
  submission.name = request.name;
  if (!request.upload.empty()) {
    ATUNNER_TRY(const platform::Upload upload, call.context.uploads.Find(request.upload));
    if (!body.contains("name"))
      submission.name = request.kernel.empty() ? upload.name : request.kernel;
    const bool source = request.kind == platform::JobKind::kSource;
    if (source != upload.name.ends_with(".cu"))
      return Invalid("'" + upload.name + "' does not fit the kind of the job", "upload",
                     "kind source takes a .cu; kind graph takes .atg, .json or .pt2");
    if (source) {
      ATUNNER_TRY(const std::string text, ReadFile(upload.file));
      ATUNNER_RETURN_IF_ERROR(platform::CheckIncludes(text));
    }
  }
  submission.payload = DumpJson(body);
  submission.priority = request.priority;
  submission.labels = request.labels;
  return submission;
}

http::Response PostJob(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  const auto request = platform::ParseJobRequest(*body);
  if (!request) return FieldProblems(request.error(), call.request_id);
  const auto submission = SubmissionOf(call, *body, *request);
  if (!submission) return ProblemOf(submission.error(), call.request_id);
  const auto submitted = call.context.queue.Submit(*submission);
  if (!submitted) return ProblemOf(submitted.error(), call.request_id);
  if (!submitted->repeated) call.context.metrics.Add("atunner_jobs_submitted_total", "");
  call.context.hub->Wake();
  http::Response response = JsonResponse(202, JobJson(submitted->job, call.context));
  response.headers.Set("Location", "/api/v1/jobs/" + submitted->job.id);
  return response;
}

Result<queue::JobFilter> FilterOf(const Call& call) {
  queue::JobFilter filter;
  ATUNNER_TRY(filter.limit, call.Integer("limit", 100, 1, 1000));
  ATUNNER_TRY(filter.offset, call.Integer("offset", 0, 0, 1'000'000'000));
  const std::string states = call.Text("state");
  for (size_t begin = 0; begin < states.size();) {
    const size_t end = std::min(states.find(',', begin), states.size());
    const auto state = queue::ParseState(states.substr(begin, end - begin));
    if (!state)
      return Invalid("unknown state '" + states.substr(begin, end - begin) + "'", "state",
                     "states are queued, running, succeeded, failed and cancelled");
    filter.states.push_back(*state);
    begin = end + 1;
  }
  return filter;
}

http::Response ListJobs(Call& call) {
  const auto filter = FilterOf(call);
  if (!filter) return ProblemOf(filter.error(), call.request_id);
  const auto page = call.context.queue.List(*filter);
  if (!page) return ProblemOf(page.error(), call.request_id);
  Json json{{"jobs", Json::array()}, {"total", page->total}};
  for (const queue::Job& job : page->jobs) json["jobs"].push_back(JobJson(job, call.context));
  return JsonResponse(200, json);
}

http::Response GetJob(Call& call) {
  const auto job = call.context.queue.Find(call.Segment(0));
  if (!job) return ProblemOf(job.error(), call.request_id);
  return WithETag(call, fmt::format("{}.{}", job->id, job->version), [&] {
    return call.context.job_texts.Get(*job, [&] { return DumpJson(JobJson(*job, call.context)); });
  });
}

http::Response CancelJob(Call& call) {
  const auto job = call.context.queue.Cancel(call.Segment(0));
  if (!job) return ProblemOf(job.error(), call.request_id);
  call.context.hub->Wake();
  return JsonResponse(202, JobJson(*job, call.context));
}

http::Response StreamOf(std::shared_ptr<http::Stream> stream) {
  http::Response response;
  response.headers.Set("Content-Type", "text/event-stream");
  response.headers.Set("Cache-Control", "no-cache");
  response.headers.Set("X-Accel-Buffering", "no");
  response.stream = std::move(stream);
  response.keep_alive = ": keep-alive\n\n";
  return response;
}

/// The event after which a client goes on: a header, or a parameter for clients without headers.
int64_t AfterOf(const Call& call, int64_t fallback) {
  std::string text = call.request.headers.Get("Last-Event-ID");
  if (text.empty()) text = call.Text("after");
  int64_t after = fallback;
  std::from_chars(text.data(), text.data() + text.size(), after);
  return after;
}

http::Response JobEvents(Call& call) {
  const auto job = call.context.queue.Find(call.Segment(0));
  if (!job) return ProblemOf(job.error(), call.request_id);
  const int64_t after = AfterOf(call, 0);
  if (queue::IsFinal(job->state)) {  // a client that has seen all would wait for ever
    const auto rest = call.context.queue.Events(job->id, after, 1);
    if (rest && rest->empty()) return Empty(204);
  }
  return StreamOf(call.context.hub->Subscribe(job->id, after));
}

http::Response AllEvents(Call& call) {
  const auto last = call.context.queue.LastEvent();
  if (!last) return ProblemOf(last.error(), call.request_id);
  return StreamOf(call.context.hub->Subscribe("", AfterOf(call, *last)));
}

}  // namespace

std::vector<Route> JobRoutes() {
  using platform::kRead;
  using platform::kSubmit;
  return {{"POST", "/api/v1/jobs", kSubmit, BodyKind::kJson, PostJob},
          {"GET", "/api/v1/jobs", kRead, BodyKind::kNone, ListJobs},
          {"GET", "/api/v1/jobs/{id}", kRead, BodyKind::kNone, GetJob},
          {"DELETE", "/api/v1/jobs/{id}", kSubmit, BodyKind::kNone, CancelJob},
          {"GET", "/api/v1/jobs/{id}/events", kRead, BodyKind::kNone, JobEvents},
          {"GET", "/api/v1/events", kRead, BodyKind::kNone, AllEvents}};
}

}  // namespace atunner::serve
