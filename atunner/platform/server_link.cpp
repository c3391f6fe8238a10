#include "atunner/platform/server_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/http/url.h"
#include "atunner/platform/job_files.h"

namespace atunner::platform {
namespace {

constexpr size_t kTrialsAtOnce = 200;
constexpr double kFirstPause = 0.2;
constexpr double kLongestPause = 5;

std::string TextOr(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

ErrorCode CodeOf(int status) {
  if (status == 404) return ErrorCode::kNotFound;
  if (status >= 500) return ErrorCode::kUnavailable;
  return ErrorCode::kInvalidInput;
}

/// True if the same request may succeed later.
bool IsPassing(const Result<http::Response>& answer) {
  if (answer) return answer->status == 503;
  return answer.error().code == ErrorCode::kUnavailable ||
         answer.error().code == ErrorCode::kTimeout;
}

class HttpLink : public ServerLink {
 public:
  HttpLink(http::Origin origin, std::string token, Clock& clock, double patience)
      : origin_(std::move(origin)), token_(std::move(token)), clock_(clock), patience_(patience) {}

  Result<std::optional<LeasedJob>> Lease(const WorkerDescription& worker,
                                         const Wanted& wanted) override {
    Json body{{"worker", worker.name},
              {"gpus", worker.gpus},
              {"labels", worker.labels},
              {"wait_seconds", wanted.wait_seconds}};
    if (!wanted.job.empty()) body["job"] = wanted.job;
    ATUNNER_TRY(const http::Response answer, Post("/api/v1/work/lease", body));
    if (answer.status == 204) return std::nullopt;
    ATUNNER_TRY(const Json json, ParseJson(answer.body, "lease"));
    LeasedJob job{TextOr(json, "job"), TextOr(json, "lease"), json.value("request", Json())};
    if (!IsSafeId(job.id) || job.lease.empty())
      return Fail(ErrorCode::kUnavailable, "the server's lease cannot be understood",
                  origin_.Text());
    return job;
  }

  Result<bool> HeartBeat(const LeasedJob& job) override {
    ATUNNER_TRY(const http::Response answer, Post(Of(job, "heartbeat"), {{"lease", job.lease}}));
    ATUNNER_TRY(const Json json, ParseJson(answer.body, "heart-beat"));
    return json.value("cancel", false);
  }

  Status SendEvents(const LeasedJob& job, int64_t batch, const Json& events,
                    const Json& progress) override {
    return Tell(
        Of(job, "events"),
        {{"lease", job.lease}, {"batch", batch}, {"events", events}, {"progress", progress}});
  }

  Result<Path> Fetch(const std::string& upload, const Path& folder) override {
    const std::string target = "/api/v1/uploads/" + http::PercentEncode(upload);
    ATUNNER_TRY(const http::Response answer, Send({.method = "GET", .target = target}, {}));
    ATUNNER_TRY(const Json json, ParseJson(answer.body, "upload"));
    const std::string name = TextOr(json, "name");
    if (!IsSafePath(name) || name.find('/') != std::string::npos)
      return Fail(ErrorCode::kUnavailable, "the upload's name is no file name", origin_.Text());
    http::CallOptions options;
    options.to_file = folder / name;
    options.seconds = 600;
    auto got = Send({.method = "GET", .target = target + "/content"}, options);
    if (!got) return std::unexpected(std::move(got).error());
    return options.to_file;
  }

  Status PutArtifact(const LeasedJob& job, const std::string& path, const Path& file) override {
    http::Request request{.method = "PUT", .target = Of(job, "artifacts"), .file = file};
    request.target += "?path=" + http::PercentEncode(path) + "&lease=" + job.lease;
    request.headers.Set("Content-Type", "application/octet-stream");
    http::CallOptions options;
    options.seconds = 600;
    auto sent = Send(std::move(request), options);
    if (!sent) return std::unexpected(std::move(sent).error());
    return {};
  }

  Result<std::string> SendRun(const LeasedJob& job, const RunRecord& run,
                              const std::vector<Trial>& trials) override {
    std::string kept = run.id;
    for (size_t begin = 0; begin == 0 || begin < trials.size(); begin += kTrialsAtOnce) {
      Json some = Json::array();
      for (size_t i = begin; i < std::min(begin + kTrialsAtOnce, trials.size()); ++i)
        some.push_back(ToJson(trials[i]));
      ATUNNER_TRY(const http::Response answer,
                  Post(Of(job, "runs"),
                       {{"lease", job.lease}, {"run", RunJson(run)}, {"trials", std::move(some)}}));
      ATUNNER_TRY(const Json json, ParseJson(answer.body, "run"));
      kept = TextOr(json, "run");
    }
    return kept;
  }

  Status End(const LeasedJob& job, const std::string& state, const Json& result, const Json& error,
             bool retry) override {
    if (state == "failed" || state == "queued")
      return Tell(Of(job, "fail"), {{"lease", job.lease},
                                    {"result", result},
                                    {"error", error},
                                    {"retry", retry},
                                    {"given_back", state == "queued"}});
    return Tell(Of(job, "complete"), {{"lease", job.lease}, {"state", state}, {"result", result}});
  }

 private:
  static std::string Of(const LeasedJob& job, const char* what) {
    return "/api/v1/work/" + job.id + "/" + what;
  }

  /// Sends a request until the server answers; an answer above 299 is an error.
  Result<http::Response> Send(http::Request request, const http::CallOptions& options) {
    if (!token_.empty()) request.headers.Set("Authorization", "Bearer " + token_);
    http::CallOptions hinted = options;
    hinted.hint = kServerHint;
    const double begin = clock_.Now();
    for (double pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      auto answer = http::Call(origin_, request, hinted);
      const bool again = IsPassing(answer) && clock_.Now() - begin < patience_;
      if (!again && answer && answer->status > 299) return std::unexpected(ErrorOf(*answer));
      if (!again) return answer;
      clock_.Sleep(pause);
    }
  }
  Result<http::Response> Post(const std::string& target, const Json& body) {
    http::Request request{.method = "POST", .target = target, .body = DumpJson(body)};
    request.headers.Set("Content-Type", "application/json");
    return Send(std::move(request), {});
  }
  Status Tell(const std::string& target, const Json& body) {
    auto answer = Post(target, body);
    if (!answer) return std::unexpected(std::move(answer).error());
    return {};
  }

  http::Origin origin_;
  std::string token_;
  Clock& clock_;
  double patience_;
};

}  // namespace

std::map<std::string, std::string> LabelsOf(const WorkerDescription& worker) {
  std::map<std::string, std::string> labels = worker.labels;
  if (!worker.gpus.empty()) labels.emplace("gpu", worker.gpus.front());
  return labels;
}

std::unique_ptr<ServerLink> MakeHttpLink(http::Origin origin, std::string token, Clock& clock,
                                         double patience_seconds) {
  return std::make_unique<HttpLink>(std::move(origin), std::move(token), clock, patience_seconds);
}

Json RunJson(const RunRecord& run) {
  return {{"id", run.id},           {"key", run.key},        {"command", run.command},
          {"created", run.created}, {"status", run.status},  {"evidence", run.evidence},
          {"device", run.device},   {"spec", run.spec},      {"space", run.space},
          {"summary", run.summary}, {"seconds", run.seconds}};
}

Result<RunRecord> RunFromJson(const Json& json) {
  if (!json.is_object()) return Invalid("must be an object", "run");
  RunRecord run;
  const std::pair<const char*, std::string*> texts[] = {
      {"id", &run.id},           {"key", &run.key},       {"command", &run.command},
      {"created", &run.created}, {"status", &run.status}, {"evidence", &run.evidence},
      {"device", &run.device},   {"spec", &run.spec},     {"space", &run.space},
      {"summary", &run.summary}};
  for (const auto& [name, text] : texts) {
    *text = TextOr(json, name);
    if (text->empty()) return Invalid("is missing", fmt::format("run.{}", name));
  }
  const auto seconds = json.find("seconds");
  if (seconds != json.end() && seconds->is_number()) run.seconds = seconds->get<double>();
  return run;
}

Error ErrorOf(const http::Response& response) {
  Error error{CodeOf(response.status), fmt::format("the server answered {}", response.status), "",
              ""};
  const auto json = ParseJson(response.body, "answer");
  if (!json || !json->is_object()) return error;
  if (const std::string detail = TextOr(*json, "detail"); !detail.empty()) error.what = detail;
  const auto errors = json->find("errors");
  if (errors == json->end() || !errors->is_array() || errors->empty()) return error;
  error.what.clear();
  for (const Json& one : *errors) {
    if (!one.is_object()) continue;
    if (error.where.empty()) {
      error.where = TextOr(one, "field");
      error.hint = TextOr(one, "hint");
    } else {
      error.what += "; " + TextOr(one, "field") + ": ";
    }
    error.what += TextOr(one, "detail");
  }
  return error;
}

}  // namespace atunner::platform
