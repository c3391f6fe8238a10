// Sends spans to a collector of OpenTelemetry.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/http/origin.h"
#include "faces/serve/serve_context.h"
#include "faces/serve/spans.h"

namespace atunner::serve {

/// Safe to use from several threads. Nobody waits for the collector: spans that it does not take in
/// time are dropped and counted in atunner_spans_total.
class TraceExporter {
 public:
  /// `endpoint`: "http://collector:4318"; spans go to /v1/traces below it. kInvalidInput at
  /// "--otlp" for one that is no URL.
  static Result<std::unique_ptr<TraceExporter>> Start(const std::string& endpoint, Log& log,
                                                      Metrics& metrics);
  /// Sends what is left, for two seconds at most.
  ~TraceExporter();

  void Add(Span span);

 private:
  TraceExporter(http::ServiceUrl url, Log& log, Metrics& metrics);
  void Loop(const std::stop_token& stop);
  /// False if the collector may take the same spans later.
  bool Send(const std::vector<Span>& spans, double seconds, const std::stop_token& stop);
  void Count(std::string_view outcome, size_t spans);

  http::ServiceUrl url_;
  Log& log_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Span> waiting_;
  bool failing_ = false;  ///< the log says so once
  std::jthread thread_;
};

/// Makes spans of jobs as they end, from the queue's events.
class JobTracer {
 public:
  /// Both must outlive the tracer. Jobs that ended before have no spans.
  JobTracer(queue::Queue& queue, TraceExporter& exporter);
  /// To be called often by one thread: a job's times are those of the calls that see its events.
  void Look();

 private:
  void See(const queue::Event& event);

  queue::Queue& queue_;
  TraceExporter& exporter_;
  int64_t cursor_ = 0;
  std::map<std::string, JobTimes> open_;
};

}  // namespace atunner::serve
