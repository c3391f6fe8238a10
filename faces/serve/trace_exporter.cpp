#include "faces/serve/trace_exporter.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/http/client.h"

namespace atunner::serve {
namespace {

constexpr std::chrono::seconds kBetweenBatches{2};
constexpr std::chrono::seconds kBeforeRetry{5};
constexpr size_t kMostInBatch = 512;
constexpr size_t kMostWaiting = 4096;
constexpr double kSendSeconds = 10;
constexpr double kLastSendSeconds = 2;
constexpr uint64_t kAnswerBytes = uint64_t{1} << 16;
constexpr int kEventsAtOnce = 500;

/// OTLP names the answers after which the same request may be sent again.
bool MayRetry(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

std::string Below(const std::string& endpoint) {
  constexpr std::string_view kPath = "/v1/traces";
  if (endpoint.ends_with(kPath)) return endpoint;
  return endpoint + std::string(endpoint.ends_with('/') ? kPath.substr(1) : kPath);
}

}  // namespace

Result<std::unique_ptr<TraceExporter>> TraceExporter::Start(const std::string& endpoint, Log& log,
                                                            Metrics& metrics) {
  auto url = http::ParseServiceUrl(Below(endpoint));
  if (!url)
    return Invalid("'" + endpoint + "': " + url.error().what, "--otlp",
                   "for example http://127.0.0.1:4318");
  return std::unique_ptr<TraceExporter>(new TraceExporter(*std::move(url), log, metrics));
}

TraceExporter::TraceExporter(http::ServiceUrl url, Log& log, Metrics& metrics)
    : url_(std::move(url)),
      log_(log),
      metrics_(metrics),
      thread_([this](const std::stop_token& stop) { Loop(stop); }) {}

TraceExporter::~TraceExporter() {
  thread_.request_stop();
  thread_.join();
  if (!waiting_.empty()) (void)Send(waiting_, kLastSendSeconds, {});
}

void TraceExporter::Add(Span span) {
  const std::scoped_lock lock(mutex_);
  if (waiting_.size() >= kMostWaiting) return Count("dropped", 1);
  waiting_.push_back(std::move(span));
  if (waiting_.size() >= kMostInBatch) changed_.notify_all();
}

void TraceExporter::Loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  bool again = false;
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, again ? kBeforeRetry : kBetweenBatches,
                      [&] { return !again && waiting_.size() >= kMostInBatch; });
    if (waiting_.empty() || stop.stop_requested()) continue;
    const auto end = waiting_.begin() +
                     static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMostInBatch));
    const std::vector<Span> batch(waiting_.begin(), end);
    lock.unlock();
    again = !Send(batch, kSendSeconds, stop);
    lock.lock();
    if (!again)
      waiting_.erase(waiting_.begin(),
                     waiting_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  }
}

bool TraceExporter::Send(const std::vector<Span>& spans, double seconds,
                         const std::stop_token& stop) {
  http::Request request{.method = "POST", .target = url_.target};
  request.headers.Set("Content-Type", "application/json");
  request.body = DumpJson(OtlpTraces(spans, ATUNNER_VERSION));
  http::CallOptions options;
  options.seconds = seconds;
  options.max_bytes = kAnswerBytes;
  options.stop = stop;
  const auto answer = http::Call(url_.origin, request, options);
  const bool taken = answer && answer->status < 300;
  if (!taken && !failing_)
    log_.Write(
        "warning", "spans cannot be sent",
        {{"to", url_.origin.Text()},
         {"why", answer ? "status " + std::to_string(answer->status) : answer.error().what}});
  failing_ = !taken;
  if (taken) Count("sent", spans.size());
  if (taken || !answer || MayRetry(answer->status)) return taken;
  Count("dropped", spans.size());  // it will never take these
  return true;
}

void TraceExporter::Count(std::string_view outcome, size_t spans) {
  metrics_.Add("atunner_spans_total", Label("outcome", std::string(outcome)),
               static_cast<double>(spans));
}

JobTracer::JobTracer(queue::Queue& queue, TraceExporter& exporter)
    : queue_(queue), exporter_(exporter), cursor_(queue.LastEvent().value_or(0)) {}

void JobTracer::Look() {
  for (;;) {
    const auto events = queue_.Events("", cursor_, kEventsAtOnce);
    if (!events || events->empty()) return;
    for (const queue::Event& event : *events) See(event);
    cursor_ = events->back().id;
  }
}

void JobTracer::See(const queue::Event& event) {
  if (event.type == "state") {
    JobTimes& times = open_[event.job];
    if (event.data == queue::Name(queue::State::kRunning)) times.started = WallSeconds();
    if (event.data == queue::Name(queue::State::kQueued) && !times.queued)
      times.queued = WallSeconds();
  }
  if (event.type != "end") return;
  const auto job = queue_.Find(event.job);
  if (job)
    for (Span& span : SpansOfJob(*job, open_[event.job], WallSeconds()))
      exporter_.Add(std::move(span));
  open_.erase(event.job);
}

}  // namespace atunner::serve
