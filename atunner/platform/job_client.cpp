#include "atunner/platform/job_client.h"

#include <algorithm>
#include <utility>

#include "atunner/http/url.h"
#include "atunner/platform/job_files.h"
#include "atunner/platform/server_link.h"

namespace atunner::platform {
namespace {

constexpr double kUploadSeconds = 600;

std::string JobTarget(const std::string& job, const std::string& rest = "") {
  return "/api/v1/jobs/" + http::PercentEncode(job) + rest;
}

/// Keeps the slashes of a path.
std::string EncodedPath(const std::string& path) {
  std::string encoded;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    encoded += "/" + http::PercentEncode(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return encoded;
}

}  // namespace

Result<http::Response> JobClient::Send(http::Request request, const http::CallOptions& options) {
  if (!token_.empty()) request.headers.Set("Authorization", "Bearer " + token_);
  http::CallOptions hinted = options;
  hinted.hint = kServerHint;
  ATUNNER_TRY(http::Response answer, http::Call(origin_, request, hinted));
  if (answer.status > 299) return std::unexpected(ErrorOf(answer));
  return answer;
}

Result<Json> JobClient::SendForJson(http::Request request) {
  ATUNNER_TRY(const http::Response answer, Send(std::move(request)));
  ATUNNER_TRY(Json json, ParseJson(answer.body, "the server's answer"));
  if (!json.is_object())
    return Fail(ErrorCode::kUnavailable, "the server's answer is no object", origin_.Text());
  return json;
}

Result<std::string> JobClient::Upload(const Path& file) {
  ATUNNER_RETURN_IF_ERROR(ReadStart(file, 1));  // a clear message for a file that is not there
  http::Request request{.method = "POST", .file = file};
  request.target = "/api/v1/uploads?name=" + http::PercentEncode(file.filename().string());
  request.headers.Set("Content-Type", "application/octet-stream");
  http::CallOptions options;
  options.seconds = kUploadSeconds;
  ATUNNER_TRY(const http::Response answer, Send(std::move(request), options));
  ATUNNER_TRY(const Json json, ParseJson(answer.body, "the server's answer"));
  return json.value("id", "");
}

Result<Json> JobClient::Submit(const Json& request, const std::string& key) {
  http::Request post{.method = "POST", .target = "/api/v1/jobs", .body = DumpJson(request)};
  post.headers.Set("Content-Type", "application/json");
  if (!key.empty()) post.headers.Set("Idempotency-Key", key);
  return SendForJson(std::move(post));
}

Result<Json> JobClient::Find(const std::string& job) {
  return SendForJson({.method = "GET", .target = JobTarget(job)});
}

Result<Json> JobClient::Cancel(const std::string& job) {
  return SendForJson({.method = "DELETE", .target = JobTarget(job)});
}

Result<int> JobClient::Fetch(const std::string& job, const Path& folder) {
  ATUNNER_TRY(const Json list,
              SendForJson({.method = "GET", .target = JobTarget(job, "/artifacts")}));
  int count = 0;
  for (const Json& one : list.value("files", Json::array())) {
    const std::string path = one.value("path", "");
    if (!IsSafePath(path))
      return Fail(ErrorCode::kUnavailable, "the server names a file outside the artifact", path);
    http::CallOptions options;
    options.to_file = folder / path;
    options.seconds = kUploadSeconds;
    ATUNNER_RETURN_IF_ERROR(MakeDirectories(options.to_file.parent_path()));
    const std::string target = JobTarget(job, "/artifacts" + EncodedPath(path));
    ATUNNER_RETURN_IF_ERROR(Send({.method = "GET", .target = target}, options));
    ++count;
  }
  return count;
}

bool HasEnded(const Json& job) {
  const std::string state = job.value("state", "");
  return state == "succeeded" || state == "failed" || state == "cancelled";
}

}  // namespace atunner::platform
