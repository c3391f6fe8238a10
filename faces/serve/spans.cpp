#include "faces/serve/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

#include "atunner/platform/access.h"

namespace atunner::serve {
namespace {

constexpr size_t kTraceDigits = 32;
constexpr size_t kSpanDigits = 16;
constexpr int kStatusError = 2;       // OTLP's Status.StatusCode
constexpr double kNanoseconds = 1e9;  // of a second

bool IsId(std::string_view text, size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return text.size() == digits && text.find_first_not_of(kDigits) == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::string RandomId(size_t digits) { return platform::RandomHex(digits / 2).value_or(""); }

/// "2026-11-27T22:55:12Z" in seconds since 1970.
std::optional<double> SecondsOf(const std::string& utc) {
  std::tm parts{};
  if (::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return std::nullopt;
  return static_cast<double>(::timegm(&parts));
}

Json OtlpValue(const Json& value) {
  if (value.is_boolean()) return {{"boolValue", value}};
  // 64-bit integers are texts in protobuf's JSON.
  if (value.is_number_integer()) return {{"intValue", std::to_string(value.get<int64_t>())}};
  if (value.is_number()) return {{"doubleValue", value}};
  return {{"stringValue", value.is_string() ? value : Json(value.dump())}};
}

Json OtlpAttributes(const Json& attributes) {
  Json list = Json::array();
  for (const auto& [key, value] : attributes.items())
    if (!value.is_null()) list.push_back({{"key", key}, {"value", OtlpValue(value)}});
  return list;
}

std::string Nanoseconds(double seconds) {
  return std::to_string(static_cast<int64_t>(std::llround(seconds * kNanoseconds)));
}

Json OtlpSpan(const Span& span) {
  Json json{{"traceId", span.self.trace},
            {"spanId", span.self.span},
            {"name", span.name},
            {"kind", static_cast<int>(span.kind)},
            {"startTimeUnixNano", Nanoseconds(span.begin)},
            {"endTimeUnixNano", Nanoseconds(std::max(span.begin, span.end))},
            {"attributes", OtlpAttributes(span.attributes)}};
  if (!span.parent.empty()) json["parentSpanId"] = span.parent;
  if (!span.error.empty()) json["status"] = {{"code", kStatusError}, {"message", span.error}};
  if (span.link)
    json["links"] = Json::array({{{"traceId", span.link->trace}, {"spanId", span.link->span}}});
  return json;
}

/// The job that this answer has made or found.
std::optional<SpanContext> JobOf(const http::Response& response) {
  constexpr std::string_view kJobs = "/api/v1/jobs/";
  const std::string location = response.headers.Get("Location");
  if (!location.starts_with(kJobs)) return std::nullopt;
  return ContextOfJob(std::string_view(location).substr(kJobs.size()));
}

/// A part of a job's time.
Span PartOf(const Span& whole, std::string_view name, double begin, double end) {
  const std::string id = platform::Sha256(whole.self.trace + std::string(name))
                             .substr(0, kSpanDigits);
  return {.self = {whole.self.trace, id},
          .parent = whole.self.span,
          .name = std::string(name),
          .begin = begin,
          .end = end};
}

/// What is known of a job and of its tuning.
Json AttributesOf(const queue::Job& job) {
  Json attributes{{"atunner.job.id", job.id},
                  {"atunner.job.name", job.name},
                  {"atunner.job.state", queue::Name(job.state)},
                  {"atunner.job.attempts", job.attempts},
                  {"atunner.job.losses", job.losses}};
  const auto progress = ParseJson(job.progress, "progress");
  if (!progress || !progress->is_object()) return attributes;
  constexpr std::array kShown{"device", "evidence", "used_trials", "used_seconds", "speedup"};
  for (const char* name : kShown)
    if (const auto found = progress->find(name); found != progress->end() && !found->is_null())
      attributes[std::string("atunner.") + name] = *found;
  return attributes;
}

/// One line of what ended the job; "" if nothing did.
std::string ErrorOf(const queue::Job& job) {
  if (job.state != queue::State::kFailed) return "";
  const auto error = ParseJson(job.error, "error");
  if (error && error->is_object()) return error->value("detail", "failed");
  return job.error.empty() ? "failed" : job.error;
}

}  // namespace

std::optional<TraceParent> ParseTraceParent(std::string_view header) {
  constexpr std::string_view kVersion = "00-";
  constexpr size_t kSpanAt = kVersion.size() + kTraceDigits + 1;
  constexpr size_t kFlagsAt = kSpanAt + kSpanDigits + 1;
  if (header.size() != kFlagsAt + 2 || !header.starts_with(kVersion)) return std::nullopt;
  if (header[kSpanAt - 1] != '-' || header[kFlagsAt - 1] != '-') return std::nullopt;
  const std::string_view trace = header.substr(kVersion.size(), kTraceDigits);
  const std::string_view span = header.substr(kSpanAt, kSpanDigits);
  if (!IsId(trace, kTraceDigits) || !IsId(span, kSpanDigits)) return std::nullopt;
  constexpr std::string_view kOdd = "13579bdf";
  return TraceParent{{std::string(trace), std::string(span)},
                     kOdd.find(header.back()) != std::string_view::npos};
}

double WallSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::optional<Span> RequestSpan(const http::Request& request, const http::Response& response,
                                std::string_view route, double begin) {
  const auto parent = ParseTraceParent(request.headers.Get("traceparent"));
  if (parent && !parent->sampled) return std::nullopt;
  Span span{
      .self = {parent ? parent->context.trace : RandomId(kTraceDigits), RandomId(kSpanDigits)},
      .parent = parent ? parent->context.span : "",
      .name = fmt::format("{} {}", request.method, route),
      .kind = SpanKind::kServer,
      .begin = begin,
      .end = WallSeconds()};
  // OpenTelemetry's semantic conventions for HTTP servers.
  span.attributes = {{"http.request.method", request.method},
                     {"http.route", route},
                     {"http.response.status_code", response.status},
                     {"client.address", request.remote},
                     {"atunner.request_id", response.headers.Get("X-Request-Id")}};
  if (response.status >= 500) span.error = std::to_string(response.status);
  span.link = JobOf(response);
  return span;
}

SpanContext ContextOfJob(std::string_view job) {
  const std::string digest = platform::Sha256(job);
  return {digest.substr(0, kTraceDigits), digest.substr(kTraceDigits, kSpanDigits)};
}

std::vector<Span> SpansOfJob(const queue::Job& job, const JobTimes& times, double end) {
  Span whole{.self = ContextOfJob(job.id), .name = "job", .end = end};
  whole.begin = times.queued.value_or(SecondsOf(job.created).value_or(end));
  whole.attributes = AttributesOf(job);
  whole.error = ErrorOf(job);
  const auto started = times.started ? times.started : SecondsOf(job.started);
  std::vector<Span> parts{PartOf(whole, "queued", whole.begin, started.value_or(end))};
  if (started) {
    parts.push_back(PartOf(whole, "attempt", *started, end));
    parts.back().attributes = {{"atunner.worker", job.worker}};
    parts.back().error = whole.error;
  }
  parts.insert(parts.begin(), std::move(whole));
  return parts;
}

Json OtlpTraces(const std::vector<Span>& spans, std::string_view version) {
  Json list = Json::array();
  for (const Span& span : spans) list.push_back(OtlpSpan(span));
  const Json resource{{"service.name", "atunner"}, {"service.version", version}};
  Json scope{{"scope", {{"name", "atunner.serve"}}}, {"spans", std::move(list)}};
  return {{"resourceSpans", Json::array({{{"resource", {{"attributes", OtlpAttributes(resource)}}},
                                          {"scopeSpans", Json::array({std::move(scope)})}}})}};
}

}  // namespace atunner::serve
