// What workers say.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "atunner/base/clock.h"
#include "faces/serve/local_workers.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

std::string TextOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

platform::WorkerDescription WorkerOf(const Json& body) {
  platform::WorkerDescription worker;
  worker.name = TextOf(body, "worker").substr(0, 100);
  for (const Json& gpu : body.value("gpus", Json::array())) {
    if (gpu.is_string()) worker.gpus.push_back(gpu.get<std::string>());
  }
  const Json labels = body.value("labels", Json::object());
  for (const auto& [name, value] : labels.items()) {
    if (value.is_string()) worker.labels[name] = value.get<std::string>();
  }
  worker.labels = platform::LabelsOf(worker);
  return worker;
}

/// A worker and, if it has a message about one, the job that it asks for.
struct LeaseRequest {
  platform::WorkerDescription worker;
  std::string job;
  double until = 0;
  std::string request_id;
};

Result<std::optional<queue::Lease>> TakeFor(ServeContext& context, const LeaseRequest& asked) {
  const queue::Worker worker{asked.worker.name, asked.worker.labels};
  const double seconds = context.options.lease_seconds;
  if (asked.job.empty()) return context.queue.Take(worker, seconds);
  return context.queue.TakeJob(worker, asked.job, seconds);
}

/// A job for the worker, or nothing yet; 204 after `until`, or when the job that it asks for waits
/// no longer.
std::optional<http::Response> TryLease(ServeContext& context, const LeaseRequest& asked) {
  const auto& [worker, wanted, until, request_id] = asked;
  // 204 would mean that the message about a certain job has become pointless.
  if (context.draining && !wanted.empty()) return Problem(503, "the server is ending", request_id);
  if (context.draining) return Empty(204);
  const auto lease = TakeFor(context, asked);
  if (!lease) return ProblemOf(lease.error(), request_id);
  context.workers.Saw(worker, *lease ? (*lease)->job.id : "");
  if (!*lease) {
    if (wanted.empty() && SystemClock().Now() < until) return std::nullopt;
    return Empty(204);
  }
  context.metrics.Add("atunner_leases_total", "");
  context.hub->Wake();
  const queue::Job& job = (*lease)->job;
  const auto request = ParseJson(job.payload, "job");
  return JsonResponse(200, {{"job", job.id},
                            {"lease", (*lease)->token},
                            {"lease_seconds", context.options.lease_seconds},
                            {"attempt", job.attempts},
                            {"request", request ? *request : Json::object()}});
}

http::Response PostLease(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  const platform::WorkerDescription worker = WorkerOf(*body);
  if (worker.name.empty())
    return ProblemOf(Invalid("is missing", "worker").error(), call.request_id);
  if (worker.name.starts_with(kLocalWorkerPrefix) && call.caller.token != kLocalWorker)
    return ProblemOf(Invalid("'" + worker.name + "' is a name of the server's own workers",
                             "worker", "choose another with --name")
                         .error(),
                     call.request_id);
  const Json wait = body->value("wait_seconds", Json(0));
  const double seconds = wait.is_number() ? std::clamp(wait.get<double>(), 0.0, 30.0) : 0;
  http::Response response;
  const LeaseRequest asked{worker, TextOf(*body, "job"), SystemClock().Now() + seconds,
                           call.request_id};
  response.later = [&context = call.context, asked] { return TryLease(context, asked); };
  return response;
}

http::Response Told(Call& call, const Status& status) {
  if (!status) return ProblemOf(status.error(), call.request_id);
  call.context.hub->Wake();
  return Empty(204);
}

http::Response HeartBeat(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  const auto cancel = call.context.queue.Extend(call.Segment(0), TextOf(*body, "lease"),
                                                call.context.options.lease_seconds);
  if (!cancel) return ProblemOf(cancel.error(), call.request_id);
  call.context.workers.SawJob(call.Segment(0));
  return JsonResponse(200, {{"cancel", *cancel}});
}

void CountTrial(Metrics& metrics, const Json& data) {
  metrics.Add("atunner_trials_total", Label("verdict", TextOf(data, "verdict")));
  metrics.Add("atunner_compile_seconds_total", "", data.value("compile_seconds", 0.0));
  metrics.Add("atunner_judge_seconds_total", "", data.value("judge_seconds", 0.0));
}

http::Response PostEvents(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  queue::Batch batch;
  batch.number = body->value("batch", int64_t{0});
  const Json progress = body->value("progress", Json());
  if (progress.is_object()) batch.progress = DumpJson(progress);
  for (const Json& event : body->value("events", Json::array())) {
    if (!event.is_object()) continue;
    const std::string type = TextOf(event, "type");
    const bool reserved = type == "state" || type == "end" || !platform::IsSafeId(type);
    const Json data = event.value("data", Json());
    if (!reserved) batch.events.emplace_back(type, DumpJson(data));
    if (type == "trial" && data.is_object()) CountTrial(call.context.metrics, data);
  }
  return Told(call, call.context.queue.Record(call.Segment(0), TextOf(*body, "lease"), batch));
}

http::Response PutArtifact(Call& call) {
  const std::string path = call.Text("path");
  if (!platform::IsSafePath(path))
    return ProblemOf(Invalid("is no path inside an artifact", "path").error(), call.request_id);
  const auto cancel = call.context.queue.Extend(call.Segment(0), call.Text("lease"),
                                                call.context.options.lease_seconds);
  if (!cancel) return ProblemOf(cancel.error(), call.request_id);
  const Path file = call.context.ArtifactsOf(call.Segment(0)) / path;
  if (const Status made = MakeDirectories(file.parent_path()); !made)
    return ProblemOf(made.error(), call.request_id);
  std::error_code error;
  std::filesystem::rename(call.request.file, file, error);
  if (error) return Problem(503, "the file cannot be kept: " + error.message(), call.request_id);
  return Empty(204);
}

/// Adds what the server's store does not have yet; sent again, it changes nothing. Returns the id
/// of the run here, which another worker may have sent under an id of its own.
Result<std::string> Import(ServeContext& context, const Json& body) {
  ATUNNER_TRY(const RunRecord run, platform::RunFromJson(body.value("run", Json())));
  const std::scoped_lock lock(context.imports);
  ATUNNER_TRY(const auto store, context.services.stores.Open());
  bool known = false;
  ATUNNER_TRY(RunRecord stored, store->OpenRun(run, known));
  for (const Json& json : body.value("trials", Json::array())) {
    ATUNNER_TRY(const Trial trial, FromJson<Trial>(json));
    ATUNNER_RETURN_IF_ERROR(store->AppendTrial(stored.id, trial));
  }
  stored.status = run.status == "running" ? "stopped" : run.status;
  stored.summary = run.summary;
  stored.seconds = run.seconds;
  ATUNNER_RETURN_IF_ERROR(store->UpdateRun(stored));
  return stored.id;
}

http::Response PostRuns(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  const auto cancel = call.context.queue.Extend(call.Segment(0), TextOf(*body, "lease"),
                                                call.context.options.lease_seconds);
  if (!cancel) return ProblemOf(cancel.error(), call.request_id);
  const auto run = Import(call.context, *body);
  if (!run) return ProblemOf(run.error(), call.request_id);
  call.context.hub->Wake();
  return JsonResponse(200, {{"run", *run}});
}

http::Response End(Call& call, queue::State state) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  queue::Ending ending;
  ending.state = state;
  if (state == queue::State::kSucceeded && TextOf(*body, "state") == "cancelled")
    ending.state = queue::State::kCancelled;
  const Json given_back = body->value("given_back", Json(false));
  if (given_back.is_boolean() && given_back.get<bool>()) ending.state = queue::State::kQueued;
  const Json retry = body->value("retry", Json(false));
  ending.retry = retry.is_boolean() && retry.get<bool>();
  const Json result = body->value("result", Json());
  const Json error = body->value("error", Json());
  if (result.is_object()) ending.result = DumpJson(result);
  if (error.is_object()) ending.error = DumpJson(error);
  call.context.workers.Left(call.Segment(0));
  return Told(call, call.context.queue.End(call.Segment(0), TextOf(*body, "lease"), ending));
}

http::Response Complete(Call& call) { return End(call, queue::State::kSucceeded); }
http::Response FailJob(Call& call) { return End(call, queue::State::kFailed); }

}  // namespace

std::vector<Route> WorkRoutes() {
  using platform::kWork;
  return {{"POST", "/api/v1/work/lease", kWork, BodyKind::kJson, PostLease},
          {"POST", "/api/v1/work/{id}/heartbeat", kWork, BodyKind::kJson, HeartBeat},
          {"POST", "/api/v1/work/{id}/events", kWork, BodyKind::kLargeJson, PostEvents},
          {"PUT", "/api/v1/work/{id}/artifacts", kWork, BodyKind::kArtifact, PutArtifact},
          {"POST", "/api/v1/work/{id}/runs", kWork, BodyKind::kLargeJson, PostRuns},
          {"POST", "/api/v1/work/{id}/complete", kWork, BodyKind::kJson, Complete},
          {"POST", "/api/v1/work/{id}/fail", kWork, BodyKind::kJson, FailJob}};
}

}  // namespace atunner::serve
