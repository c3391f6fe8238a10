// Spans and their way to a collector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/http/server.h"
#include "atunner/queue/sqlite_queue.h"
#include "faces/serve/spans.h"
#include "faces/serve/trace_exporter.h"

namespace atunner::serve {
namespace {

using testing::ElementsAre;

constexpr const char* kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParent, TheHeaderOfTheStandardIsRead) {
  const auto parent = ParseTraceParent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->context.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(parent->context.span, "00f067aa0ba902b7");
  EXPECT_TRUE(parent->sampled);
  std::string unsampled = kParent;
  unsampled.back() = '0';
  EXPECT_FALSE(ParseTraceParent(unsampled)->sampled);
}

TEST(TraceParent, OtherTextsAreNone) {
  for (const char* text : {"", "00", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"})
    EXPECT_FALSE(ParseTraceParent(text)) << text;
}

http::Request PostJob(const std::string& parent) {
  http::Request request{.method = "POST", .target = "/api/v1/jobs"};
  if (!parent.empty()) request.headers.Set("traceparent", parent);
  return request;
}

TEST(RequestSpan, IsPartOfItsClientsTraceAndLeadsToTheJob) {
  http::Response answer{.status = 202};
  answer.headers.Set("Location", "/api/v1/jobs/j-1");
  const auto span = RequestSpan(PostJob(kParent), answer, "/api/v1/jobs", 5);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->name, "POST /api/v1/jobs");
  EXPECT_EQ(span->self.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(span->parent, "00f067aa0ba902b7");
  EXPECT_EQ(span->attributes["http.response.status_code"], 202);
  EXPECT_EQ(span->link->trace, ContextOfJob("j-1").trace);
  EXPECT_EQ(span->error, "");
}

TEST(RequestSpan, BeginsATraceUnlessItsClientWantsNone) {
  const auto first = RequestSpan(PostJob(""), {.status = 500}, "/api/v1/jobs", 5);
  const auto second = RequestSpan(PostJob("nonsense"), {.status = 200}, "/api/v1/jobs", 5);
  EXPECT_EQ(first->self.trace.size(), 32U);
  EXPECT_EQ(first->parent, "");
  EXPECT_EQ(first->error, "500");
  EXPECT_NE(first->self.trace, second->self.trace);
  std::string unsampled = kParent;
  unsampled.back() = '0';
  EXPECT_FALSE(RequestSpan(PostJob(unsampled), {.status = 200}, "/api/v1/jobs", 5));
}

std::vector<std::string> NamesOf(const std::vector<Span>& spans) {
  std::vector<std::string> names;
  for (const Span& span : spans) names.push_back(span.name);
  return names;
}

TEST(SpansOfJob, AJobItsTimeInTheQueueAndItsAttempt) {
  queue::Job job;
  job.id = "j-1";
  job.state = queue::State::kFailed;
  job.created = "1970-01-01T00:01:40Z";
  job.worker = "tester";
  job.progress = R"({"used_trials": 3, "device": "A100", "speedup": null})";
  job.error = R"({"detail": "no such operator"})";
  const auto spans = SpansOfJob(job, {.queued = {}, .started = 103.5}, 110);
  ASSERT_THAT(NamesOf(spans), ElementsAre("job", "queued", "attempt"));
  EXPECT_EQ(spans[0].begin, 100);
  EXPECT_EQ(spans[0].end, 110);
  EXPECT_EQ(spans[0].error, "no such operator");
  EXPECT_EQ(spans[0].attributes["atunner.used_trials"], 3);
  EXPECT_FALSE(spans[0].attributes.contains("atunner.speedup"));
  EXPECT_EQ(spans[1].end, 103.5);
  EXPECT_EQ(spans[2].begin, 103.5);
  EXPECT_EQ(spans[2].parent, spans[0].self.span);
  EXPECT_EQ(spans[2].attributes["atunner.worker"], "tester");
  EXPECT_NE(spans[1].self.span, spans[2].self.span);
}

TEST(SpansOfJob, AJobThatNeverBeganHasNoAttempt) {
  queue::Job job;
  job.state = queue::State::kCancelled;
  EXPECT_THAT(NamesOf(SpansOfJob(job, {}, 110)), ElementsAre("job", "queued"));
}

TEST(OtlpTraces, FollowsTheProtocol) {
  const Span span{.self = {"0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"},
                  .parent = "00f067aa0ba902b7",
                  .name = "job",
                  .begin = 1.5,
                  .end = 2,
                  .attributes = {{"count", 3}, {"share", 0.5}, {"name", "x"}, {"on", true}},
                  .error = "why",
                  .link = SpanContext{"1", "2"}};
  const Json json = OtlpTraces({span}, "1.2.3");
  const Json& resource = json["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][1],
            Json::parse(R"({"key": "service.version", "value": {"stringValue": "1.2.3"}})"));
  EXPECT_EQ(resource["scopeSpans"][0]["spans"][0], Json::parse(R"({
    "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
    "name": "job", "kind": 1,
    "startTimeUnixNano": "1500000000", "endTimeUnixNano": "2000000000",
    "attributes": [{"key": "count", "value": {"intValue": "3"}},
                   {"key": "share", "value": {"doubleValue": 0.5}},
                   {"key": "name", "value": {"stringValue": "x"}},
                   {"key": "on", "value": {"boolValue": true}}],
    "parentSpanId": "00f067aa0ba902b7",
    "status": {"code": 2, "message": "why"},
    "links": [{"traceId": "1", "spanId": "2"}]})"));
}

/// A collector that answers with `status`.
class Collector : public http::Handler {
 public:
  explicit Collector(int status) : status_(status) {
    server_ = http::Server::Start({.threads = 1}, *this).value();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  /// The first body after it has come.
  Json Body() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !bodies_.empty(); });
    return ParseJson(bodies_.front()).value();
  }
  std::variant<http::BodyPlan, http::Response> Accept(const http::Request& head) override {
    if (head.target != "/v1/traces") return Refuse(404, "");
    return http::BodyPlan{1 << 20, {}};
  }
  http::Response Answer(const http::Request& request) override {
    const std::scoped_lock lock(mutex_);
    bodies_.push_back(request.body);
    came_.notify_all();
    return {.status = status_};
  }
  http::Response Refuse(int status, const std::string&) override { return {.status = status}; }

 private:
  int status_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> bodies_;
  std::unique_ptr<http::Server> server_;
};

TEST(TraceExporter, SpansOfAJobGoToTheCollector) {
  Collector collector(200);
  Log log;
  Metrics metrics;
  const TemporaryDirectory folder;
  const auto queue = queue::SqliteQueue::Open(folder.path() / "queue.db").value();
  {
    const auto exporter = TraceExporter::Start(collector.url(), log, metrics).value();
    JobTracer tracer(*queue, *exporter);
    const std::string id = queue->Submit({.name = "relu", .payload = "{}"})->job.id;
    tracer.Look();
    const auto lease = queue->Take({"tester", {}}, 30).value();
    ASSERT_TRUE(queue->End(id, lease->token, {}));
    tracer.Look();
    tracer.Look();  // a job's spans are made once
  }
  const Json spans = collector.Body()["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0]["name"], "job");
  EXPECT_EQ(spans[2]["name"], "attempt");
  EXPECT_THAT(metrics.Text(), testing::HasSubstr(R"(atunner_spans_total{outcome="sent"} 3)"));
}

TEST(TraceExporter, SpansThatAreRefusedAreDropped) {
  Collector collector(400);
  Log log;
  Metrics metrics;
  TraceExporter::Start(collector.url() + "/", log, metrics).value()->Add(Span{.name = "x"});
  EXPECT_EQ(collector.Body()["resourceSpans"].size(), 1U);
  EXPECT_THAT(metrics.Text(), testing::HasSubstr(R"(atunner_spans_total{outcome="dropped"} 1)"));
}

TEST(TraceExporter, ACollectorThatIsAwayHoldsNobodyUp) {
  Log log;
  Metrics metrics;
  const auto exporter = TraceExporter::Start("http://127.0.0.1:1", log, metrics).value();
  for (int i = 0; i < 5000; ++i) exporter->Add(Span{.name = "x"});
  EXPECT_THAT(metrics.Text(), testing::HasSubstr(R"(atunner_spans_total{outcome="dropped"} 904)"));
}

TEST(TraceExporter, AnEndpointIsAUrl) {
  Log log;
  Metrics metrics;
  const auto exporter = TraceExporter::Start("collector:4318", log, metrics);
  ASSERT_FALSE(exporter);
  EXPECT_EQ(exporter.error().where, "--otlp");
}

}  // namespace
}  // namespace atunner::serve
