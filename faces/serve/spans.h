// Spans of requests and jobs, as OpenTelemetry's protocol (OTLP 1.x, JSON over HTTP) has them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/http/message.h"
#include "atunner/model/json/json.h"
#include "atunner/queue/queue.h"

namespace atunner::serve {

/// Which span of which trace; lower-case hexadecimal digits.
struct SpanContext {
  std::string trace;  ///< 32 digits
  std::string span;   ///< 16 digits
};

/// OTLP's Span.SpanKind.
enum class SpanKind { kInternal = 1, kServer = 2 };

struct Span {
  SpanContext self;
  std::string parent;  ///< span of the same trace; "" for the first one
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  double begin = 0;  ///< seconds since 1970
  double end = 0;
  Json attributes = Json::object();  ///< texts, integers, numbers and truth values
  std::string error;                 ///< "" for none
  std::optional<SpanContext> link;   ///< a span of another trace that this one caused
};

/// What a client says of its own span (W3C Trace Context, version 00).
struct TraceParent {
  SpanContext context;
  bool sampled = true;
};
/// nullopt for a text that is none.
std::optional<TraceParent> ParseTraceParent(std::string_view header);

/// Seconds since 1970.
double WallSeconds();

/// The request's span: part of its client's trace if it names one, else of a new one. nullopt if
/// the client's trace is not recorded. `route` is the path with its variables' names.
std::optional<Span> RequestSpan(const http::Request& request, const http::Response& response,
                                std::string_view route, double begin);

/// The first span of the job's own trace, which follows from its id: it stays the same when the
/// server is started again.
SpanContext ContextOfJob(std::string_view job);

/// When the job was submitted and when its last attempt began, in seconds since 1970.
struct JobTimes {
  std::optional<double> queued;
  std::optional<double> started;
};

/// Spans of a job that has ended at `end`: all of it, its time in the queue, and its last attempt.
/// Times that are not known are those of the queue, in whole seconds.
std::vector<Span> SpansOfJob(const queue::Job& job, const JobTimes& times, double end);

/// The body of a POST to /v1/traces.
Json OtlpTraces(const std::vector<Span>& spans, std::string_view version);

}  // namespace atunner::serve
