#include "faces/serve/call.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>

#include "atunner/base/digest.h"

namespace atunner::serve {
namespace {

int StatusOf(const Error& error) {
  if (error.where == queue::kKeyField || error.where == queue::kLeaseField) return 409;
  switch (error.code) {
    case ErrorCode::kInvalidInput:
    case ErrorCode::kUnsupported:
      return 422;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

Result<int> Call::Integer(const char* name, int fallback, int least, int most) const {
  const auto text = url.Find(name);
  if (!text) return fallback;
  int value = 0;
  const char* const end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || at != end || value < least || value > most)
    return Invalid(fmt::format("must be an integer from {} to {}", least, most), name);
  return value;
}

Result<std::optional<double>> Call::Number(const char* name) const {
  const auto text = url.Find(name);
  if (!text) return std::nullopt;
  double value = 0;
  const char* const end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || at != end || !std::isfinite(value))
    return Invalid("must be a number", name);
  return value;
}

Result<Json> Call::Body() const {
  ATUNNER_TRY(Json json, ParseJson(request.body, "body"));
  if (!json.is_object()) return Invalid("must be a JSON object", "body");
  return json;
}

http::Response JsonResponse(int status, const Json& json) {
  http::Response response;
  response.status = status;
  response.headers.Set("Content-Type", "application/json");
  response.headers.Set("Cache-Control", "no-store");
  response.body = DumpJson(json);
  return response;
}

http::Response Empty(int status) {
  http::Response response;
  response.status = status;
  return response;
}

http::Response Problem(int status, const std::string& detail, const std::string& request_id,
                       const std::vector<platform::FieldProblem>& fields) {
  Json json{{"type", "about:blank"},
            {"title", http::ReasonOf(status)},
            {"status", status},
            {"detail", detail},
            {"request_id", request_id}};
  for (const platform::FieldProblem& one : fields) {
    Json entry{{"field", one.field}, {"detail", one.detail}};
    if (!one.hint.empty()) entry["hint"] = one.hint;
    json["errors"].push_back(std::move(entry));
  }
  http::Response response = JsonResponse(status, json);
  response.headers.Set("Content-Type", "application/problem+json");
  return response;
}

http::Response ProblemOf(const Error& error, const std::string& request_id) {
  const int status = StatusOf(error);
  // Internal errors name files of the server: those belong into its log alone.
  if (status == 500)
    return Problem(status, "the server failed; its log says more under this request_id",
                   request_id);
  std::vector<platform::FieldProblem> fields;
  if (!error.where.empty()) fields.push_back(platform::ProblemOf(error));
  return Problem(status, error.what, request_id, fields);
}

http::Response WithETag(const Call& call, const std::string& etag,
                        const std::function<std::string()>& body) {
  const std::string quoted = "\"" + etag + "\"";
  const bool same = call.request.headers.Get("If-None-Match").find(quoted) != std::string::npos;
  http::Response response = Empty(same ? 304 : 200);
  if (!same) {
    response.headers.Set("Content-Type", "application/json");
    response.body = body();
  }
  response.headers.Set("ETag", quoted);
  response.headers.Set("Cache-Control", "no-cache");
  return response;
}

std::string RequestIdOf(const http::Request& request) {
  const std::string given = request.headers.Get("X-Request-Id");
  if (platform::IsSafeId(given)) return given;
  // Names a line of the log, and protects nothing.
  thread_local std::mt19937_64 random(std::random_device{}());
  return fmt::format("{:016x}", random());
}

}  // namespace atunner::serve
