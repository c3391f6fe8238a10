// The server in this process, over real connections, with fakes for compiler, device and clock. The
// worker runs in this process too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/http/client.h"
#include "atunner/jobs/testing/fake_services_test.h"
#include "atunner/platform/job_client.h"
#include "atunner/platform/worker.h"
#include "faces/serve/gzip.h"
#include "faces/serve/metrics.h"
#include "faces/serve/routes.h"
#include "faces/serve/serve.h"

namespace atunner::serve {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kRelu = R"({"kind": "operator", "operator": "relu", "shapes": [[1024, 64]],
  "target_gpu": "A100", "budget": {"trials": 3}})";

class ApiTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }
  void TearDown() override { Stop(); }

  void Start(bool require_tokens = false) {
    Stop();
    ServeOptions options;
    options.port = 0;
    options.store = fakes_.folder.path() / "runs.db";
    options.data = DataFolder(options.store);
    options.workers = 0;
    options.require_tokens = require_tokens;
    options.upload_bytes = 1000;
    options.requests_per_second = requests_per_second_;
    std::promise<std::string> url;
    auto ready = url.get_future();
    stop_ = std::stop_source();
    thread_ = std::thread([this, options, &url] {
      const Status served = Serve(
          options, fakes_.services, [&](const std::string& text) { url.set_value(text); },
          stop_.get_token());
      EXPECT_TRUE(served) << served.error().ToString();
    });
    origin_ = http::ParseOrigin(ready.get(), "url").value();
  }
  void Stop() {
    stop_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  http::Response Ask(const std::string& method, const std::string& target, std::string body = "",
                     const http::Headers& headers = {}) {
    http::Request request{.method = method, .target = target, .body = std::move(body)};
    request.headers = headers;
    if (!token_.empty()) request.headers.Set("Authorization", "Bearer " + token_);
    return http::Call(origin_, request).value();
  }
  Json Get(const std::string& target) {
    const http::Response answer = Ask("GET", target);
    EXPECT_EQ(answer.status, 200) << target << answer.body;
    return ParseJson(answer.body).value();
  }
  std::string Submit(const char* request = kRelu) {
    const http::Response answer = Ask("POST", "/api/v1/jobs", request);
    EXPECT_EQ(answer.status, 202) << answer.body;
    return ParseJson(answer.body).value()["id"];
  }
  /// Runs one job with the services of another machine.
  bool Work(jobs::FakeServices& machine, bool shares_store) {
    platform::WorkerOptions options;
    options.description.name = "tester";
    options.folder = machine.folder.path() / "work";
    options.shares_store = shares_store;
    options.heart_beat_seconds = 0.02;
    const auto link = platform::MakeHttpLink(origin_, token_, SystemClock(), 0);
    const platform::WorkerLog log = [](const std::string&) {};
    platform::Worker worker(options, *link, machine.services, log);
    return worker.RunOne({}).value();
  }
  std::string Token(const std::string& scopes) {
    const auto tokens =
        platform::Tokens::Open(DataFolder(fakes_.folder.path() / "runs.db") / "tokens.db").value();
    return tokens->Create("test", platform::ParseScopes(scopes).value(), std::nullopt)->secret;
  }

  jobs::FakeServices fakes_;
  std::stop_source stop_;
  std::thread thread_;
  http::Origin origin_;
  std::string token_;
  double requests_per_second_ = 100;
};

TEST_F(ApiTest, AJobFromItsSubmissionToItsArtifact) {
  const std::string id = Submit();
  EXPECT_EQ(Get("/api/v1/jobs/" + id)["state"], "queued");
  ASSERT_TRUE(Work(fakes_, true));
  const Json job = Get("/api/v1/jobs/" + id);
  EXPECT_EQ(job["state"], "succeeded") << job;
  EXPECT_EQ(job["evidence"], "predicted");
  EXPECT_EQ(job["worker"], "tester");
  EXPECT_EQ(job["budget"]["used_trials"], 3);
  EXPECT_GT(job["best"]["time_ns"], 0);
  EXPECT_GT(job["artifact"]["files"], 3);

  const Json files = Get("/api/v1/jobs/" + id + "/artifacts")["files"];
  const http::Response manifest = Ask("GET", "/api/v1/jobs/" + id + "/artifacts/manifest.json");
  EXPECT_EQ(manifest.status, 200);
  EXPECT_THAT(manifest.headers.Get("Content-Disposition"), HasSubstr("attachment"));
  EXPECT_TRUE(ParseJson(manifest.body));
  EXPECT_THAT(Ask("GET", "/api/v1/jobs/" + id + "/artifacts.tar").body, StartsWith(id + "/"));
  platform::JobClient client(origin_, "");
  EXPECT_EQ(client.Fetch(id, fakes_.folder.path() / "best").value(),
            static_cast<int>(files.size()));
  EXPECT_EQ(ReadFile(fakes_.folder.path() / "best" / "manifest.json").value(), manifest.body);

  const std::string run = job["runs"][0];
  EXPECT_EQ(Get("/api/v1/runs")["runs"][0]["id"], run);
  EXPECT_EQ(Get("/api/v1/runs/" + run)["summary"]["trials"], 3);
  EXPECT_EQ(Get("/api/v1/runs/" + run + "/trials?sort=-time_ns&limit=2")["trials"].size(), 2);
  EXPECT_EQ(Get("/api/v1/runs/" + run + "/trials/1")["number"], 1);
  EXPECT_THAT(Ask("GET", "/api/v1/runs/" + run + "/report").body, HasSubstr("<html"));
  EXPECT_EQ(Ask("GET", "/api/v1/runs/" + run + "/report?format=x").status, 422);
  EXPECT_EQ(Ask("GET", "/api/v1/runs/none").status, 404);
  EXPECT_EQ(Ask("GET", "/api/v1/runs/" + run + "/trials/x").status, 404);
  EXPECT_EQ(Ask("GET", "/api/v1/runs/" + run + "/trials?limit=0").status, 422);
}

TEST_F(ApiTest, AWorkerElsewhereSendsItsRuns) {
  jobs::FakeServices elsewhere;
  const std::string id = Submit();
  ASSERT_TRUE(Work(elsewhere, false));
  const std::string run = Get("/api/v1/jobs/" + id)["runs"][0];
  EXPECT_EQ(Get("/api/v1/runs/" + run)["status"], "finished");
  EXPECT_EQ(Get("/api/v1/runs/" + run + "/trials")["total"], 3);
  EXPECT_EQ(Get("/api/v1/workers")["workers"][0]["name"], "tester");
  // A third machine gets an equal job: its run is the one that is here.
  jobs::FakeServices another;
  const std::string equal = Submit();
  ASSERT_TRUE(Work(another, false));
  EXPECT_EQ(Get("/api/v1/jobs/" + equal)["runs"], Json::array({run}));
}

TEST_F(ApiTest, EventsComeInOrderAndGoOnWhereTheyEnded) {
  const std::string id = Submit();
  ASSERT_TRUE(Work(fakes_, true));
  const std::string all = Ask("GET", "/api/v1/jobs/" + id + "/events").body;
  EXPECT_THAT(all, StartsWith("id: "));
  for (const char* type : {"state", "run_started", "trial", "run_finished", "end"})
    EXPECT_THAT(all, HasSubstr(std::string("event: ") + type + "\n"));
  const size_t trial = all.find("event: trial");
  const size_t number = all.rfind("id: ", trial) + 4;
  const std::string last = all.substr(number, all.find('\n', number) - number);
  const std::string rest =
      Ask("GET", "/api/v1/jobs/" + id + "/events", "", {{"Last-Event-ID", last}}).body;
  EXPECT_THAT(all, testing::EndsWith(rest));
  EXPECT_THAT(rest, Not(HasSubstr("id: " + last + "\n")));
  EXPECT_THAT(rest, HasSubstr("event: end"));
  EXPECT_EQ(Ask("GET", "/api/v1/jobs/" + id + "/events?after=999999").status, 204);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs/none/events").status, 404);
}

TEST_F(ApiTest, WatchersOfAllJobsSeeStates) {
  std::promise<std::string> heard;
  std::thread watcher([&] { heard.set_value(Ask("GET", "/api/v1/events?after=0").body); });
  const std::string id = Submit();
  ASSERT_TRUE(Work(fakes_, true));
  while (Get("/api/v1/jobs/" + id)["state"] != "succeeded") std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  Stop();  // ends the stream
  watcher.join();
  const std::string all = heard.get_future().get();
  EXPECT_THAT(all, HasSubstr("\"state\":\"succeeded\""));
  EXPECT_THAT(all, Not(HasSubstr("event: trial")));
}

TEST_F(ApiTest, TheSameKeyIsTheSameJob) {
  const http::Headers key{{"Idempotency-Key", "k1"}};
  const http::Response first = Ask("POST", "/api/v1/jobs", kRelu, key);
  const http::Response second = Ask("POST", "/api/v1/jobs", kRelu, key);
  EXPECT_EQ(first.headers.Get("Location"), second.headers.Get("Location"));
  const char* other = R"({"kind": "operator", "operator": "relu", "shapes": [[2, 2]]})";
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", other, key).status, 409);
  EXPECT_EQ(Get("/api/v1/jobs")["total"], 1);
}

TEST_F(ApiTest, WrongRequestsAreProblems) {
  const http::Response wrong = Ask(
      "POST", "/api/v1/jobs",
      R"({"kind": "operator", "operator": "sofmax", "shapes": [[4, 4]], "seed": -1, "x": 1})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(wrong.headers.Get("Content-Type"), "application/problem+json");
  const Json problem = ParseJson(wrong.body).value();
  EXPECT_EQ(problem["errors"].size(), 3);
  EXPECT_EQ(problem["request_id"], wrong.headers.Get("X-Request-Id"));
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", "{").status, 400);
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", "[]").status, 400);
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", std::string(3 << 20, ' ')).status, 413);
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", R"({"kind": "source", "upload": "up-none"})").status, 404);
  EXPECT_EQ(Ask("GET", "/api/v1/nothing").status, 404);
  EXPECT_EQ(Ask("PUT", "/api/v1/jobs").status, 405);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs?state=lost").status, 422);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs/none").status, 404);
  EXPECT_EQ(Ask("GET", "/api/../../etc/passwd").status, 400);
}

TEST_F(ApiTest, PagesOfOtherServersAreRefused) {
  EXPECT_EQ(Ask("GET", "/api/v1/jobs", "", {{"Origin", "http://evil.example"}}).status, 403);
  const std::string own = "http://127.0.0.1:" + origin_.port;
  EXPECT_EQ(Ask("GET", "/api/v1/jobs", "", {{"Origin", own}}).status, 200);
  for (const char* host : {"evil.example", "127.evil.example", "127.0.0.1.evil.example"})
    EXPECT_EQ(Ask("GET", "/api/v1/jobs", "", {{"Host", host}}).status, 421) << host;
}

TEST_F(ApiTest, QueuedJobsAreCancelledAtOnce) {
  const std::string id = Submit();
  const http::Response cancelled = Ask("DELETE", "/api/v1/jobs/" + id);
  EXPECT_EQ(cancelled.status, 202);
  EXPECT_EQ(ParseJson(cancelled.body).value()["state"], "cancelled");
  EXPECT_EQ(Ask("DELETE", "/api/v1/jobs/none").status, 404);
}

TEST_F(ApiTest, UnchangedJobsAreNotSentAgain) {
  const std::string id = Submit();
  const std::string etag = Ask("GET", "/api/v1/jobs/" + id).headers.Get("ETag");
  const http::Headers known{{"If-None-Match", etag}};
  EXPECT_EQ(Ask("GET", "/api/v1/jobs/" + id, "", known).status, 304);
  Ask("DELETE", "/api/v1/jobs/" + id);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs/" + id, "", known).status, 200);
}

TEST_F(ApiTest, UploadsAreLimitedAndComeBack) {
  const http::Response made = Ask("POST", "/api/v1/uploads?name=kernel.cu", "int x;\n");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string link = made.headers.Get("Location");
  EXPECT_EQ(Get(link)["bytes"], 7);
  EXPECT_EQ(Ask("GET", link + "/content").body, "int x;\n");
  EXPECT_EQ(Ask("POST", "/api/v1/uploads?name=kernel.cu", std::string(1001, 'a')).status, 413);
  EXPECT_EQ(Ask("POST", "/api/v1/uploads?name=..%2Fkernel.cu", "x").status, 422);
  EXPECT_EQ(Ask("POST", "/api/v1/uploads?name=run.sh", "x").status, 422);
  EXPECT_EQ(Ask("GET", "/api/v1/uploads/none").status, 404);
  const std::string upload = Get(link)["id"];
  const std::string graph = R"({"kind": "graph", "upload": ")" + upload + R"("})";
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", graph).status, 422);
  const http::Response evil = Ask("POST", "/api/v1/uploads?name=evil.cu",
                                  "#include \"/etc/passwd\"\n");
  const std::string id = ParseJson(evil.body).value()["id"];
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", R"({"kind": "source", "upload": ")" + id + "\"}").status,
            422);
  EXPECT_TRUE(
      platform::FilesBelow(DataFolder(fakes_.folder.path() / "runs.db") / "incoming").empty());
}

TEST_F(ApiTest, ArtifactsDoNotLeadElsewhere) {
  const std::string id = Submit();
  ASSERT_TRUE(Work(fakes_, true));
  for (const char* path : {"none", "%2e%2e/%2e%2e/queue.db", "..%2f..%2fqueue.db", ".hidden"})
    EXPECT_GE(Ask("GET", "/api/v1/jobs/" + id + "/artifacts/" + path).status, 400) << path;
}

TEST_F(ApiTest, ALostLeaseIsAConflict) {
  const std::string id = Submit();
  const std::string work = "/api/v1/work/" + id;
  const std::string body = R"({"lease": "wrong"})";
  for (const char* what : {"/heartbeat", "/events", "/runs", "/complete", "/fail"})
    EXPECT_EQ(Ask("POST", work + what, body).status, 409) << what;
  EXPECT_EQ(Ask("PUT", work + "/artifacts?path=a&lease=wrong", "x").status, 409);
  EXPECT_EQ(Ask("PUT", work + "/artifacts?path=..%2Fa&lease=wrong", "x").status, 422);
  EXPECT_EQ(Ask("POST", "/api/v1/work/lease", "{}").status, 422);
}

TEST_F(ApiTest, AWorkerMayAskForACertainJob) {
  Submit();
  const std::string second = Submit();
  const std::string ask = R"({"worker": "w", "job": ")" + second + R"("})";
  const http::Response lease = Ask("POST", "/api/v1/work/lease", ask);
  ASSERT_EQ(lease.status, 200) << lease.body;
  EXPECT_EQ(ParseJson(lease.body).value()["job"], second);
  EXPECT_EQ(Ask("POST", "/api/v1/work/lease", ask).status, 204) << "it runs";
  EXPECT_EQ(Ask("POST", "/api/v1/work/lease", R"({"worker": "w", "job": "x"})").status, 204);
}

TEST_F(ApiTest, TokensHaveScopes) {
  const std::string reader = Token("read");
  const std::string submitter = Token("submit");
  const std::string admin = Token("admin");
  Start(true);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs").status, 401);
  EXPECT_EQ(Ask("GET", "/healthz").status, 200);
  token_ = "atn_wrong";
  EXPECT_EQ(Ask("GET", "/api/v1/jobs").status, 401);
  token_ = reader;
  EXPECT_EQ(Ask("GET", "/api/v1/jobs").status, 200);
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", kRelu).status, 403);
  EXPECT_EQ(Ask("GET", "/api/v1/tokens").status, 403);
  EXPECT_EQ(Ask("POST", "/api/v1/work/lease", R"({"worker": "w"})").status, 403);
  token_ = submitter;
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", kRelu).status, 202);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs").status, 403);
  token_ = admin;
  const http::Response made = Ask("POST", "/api/v1/tokens",
                                  R"({"name": "ci", "scopes": ["read"], "expires_days": 1})");
  ASSERT_EQ(made.status, 201) << made.body;
  const Json token = ParseJson(made.body).value();
  EXPECT_THAT(Ask("GET", "/api/v1/tokens").body, Not(HasSubstr(token["token"].get<std::string>())));
  EXPECT_EQ(Ask("POST", "/api/v1/tokens", R"({"name": "ci", "scopes": ["x"]})").status, 422);
  token_ = token["token"];
  EXPECT_EQ(Ask("GET", "/api/v1/status").status, 200);
  token_ = admin;
  EXPECT_EQ(Ask("DELETE", "/api/v1/tokens/" + token["id"].get<std::string>()).status, 204);
  token_ = token["token"];
  EXPECT_EQ(Ask("GET", "/api/v1/status").status, 401);
}

TEST_F(ApiTest, TooManyRequestsOfOneTokenAreRefused) {
  requests_per_second_ = 1;
  const std::string busy = Token("read");
  const std::string other = Token("read");
  Start(true);
  token_ = busy;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Ask("GET", "/api/v1/status").status, 200);
  const http::Response refused = Ask("GET", "/api/v1/status");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.Get("Retry-After"), "5");
  EXPECT_EQ(Ask("GET", "/healthz").status, 200);
  token_ = other;
  EXPECT_EQ(Ask("GET", "/api/v1/status").status, 200);
}

TEST_F(ApiTest, GuessersAreSlowedDownAndOthersAreNot) {
  const std::string reader = Token("read");
  Start(true);
  token_ = "atn_guess";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask("GET", "/api/v1/status").status, 401);
  EXPECT_EQ(Ask("GET", "/api/v1/status").status, 429);
  token_ = reader;
  EXPECT_EQ(Ask("GET", "/api/v1/status").status, 200);
}

TEST_F(ApiTest, ChangesAndRefusalsAreInTheAuditLog) {
  const std::string submitter = Token("submit");
  Start(true);
  Ask("GET", "/api/v1/jobs");
  token_ = submitter;
  const http::Response made = Ask("POST", "/api/v1/jobs", kRelu);
  Ask("GET", "/api/v1/openapi.yaml");
  const Path file = DataFolder(fakes_.folder.path() / "runs.db") / "audit.jsonl";
  const std::string text = ReadFile(file).value();
  EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
  std::istringstream lines(text);
  std::vector<Json> entries;
  for (std::string line; std::getline(lines, line);) entries.push_back(ParseJson(line).value());
  ASSERT_EQ(entries.size(), 2) << text;
  EXPECT_EQ(entries[0]["status"], 401);
  EXPECT_EQ(entries[1]["method"], "POST");
  EXPECT_EQ(entries[1]["name"], "test");
  EXPECT_EQ(entries[1]["made"], made.headers.Get("Location"));
  EXPECT_THAT(text, Not(HasSubstr(submitter)));
}

TEST_F(ApiTest, BrowsersGetACookie) {
  const std::string reader = Token("read");
  Start(true);
  EXPECT_EQ(Ask("POST", "/api/v1/session", R"({"token": "x"})").status, 401);
  const http::Response session = Ask("POST", "/api/v1/session", R"({"token": ")" + reader + "\"}");
  ASSERT_EQ(session.status, 200) << session.body;
  const std::string cookie = session.headers.Get("Set-Cookie");
  EXPECT_THAT(cookie, HasSubstr("HttpOnly; SameSite=Strict"));
  const http::Headers with{{"Cookie", "other=1; " + cookie.substr(0, cookie.find(';'))}};
  EXPECT_EQ(Ask("GET", "/api/v1/jobs", "", with).status, 200);
  EXPECT_THAT(Ask("DELETE", "/api/v1/session").headers.Get("Set-Cookie"), HasSubstr("Max-Age=0"));
}

TEST_F(ApiTest, OtherAddressesNeedTokens) {
  ServeOptions options;
  ASSERT_TRUE(ParseListen("0.0.0.0:0", options));
  options.store = fakes_.folder.path() / "runs.db";
  options.data = fakes_.folder.path() / "other";
  const Status refused = Serve(options, fakes_.services, [](const std::string&) {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "--listen");
  EXPECT_THAT(refused.error().hint, HasSubstr("atunner token create"));
  for (const char* text : {"", "8080", ":80", "a:b", "127.0.0.1:99999"})
    EXPECT_FALSE(ParseListen(text, options)) << text;
  ASSERT_TRUE(ParseListen("[::1]:5", options));
  EXPECT_EQ(options.address, "::1");
}

TEST_F(ApiTest, TheMachineIsDescribed) {
  EXPECT_EQ(Ask("GET", "/readyz").body, "ok\n");
  EXPECT_THAT(Get("/api/v1/devices")["known"].dump(), HasSubstr("H200"));
  EXPECT_THAT(Get("/api/v1/operators").dump(), HasSubstr("\"softmax\""));
  EXPECT_EQ(Get("/api/v1/status")["auth_required"], false);
  EXPECT_THAT(Ask("GET", "/api/v1/openapi.yaml").body, HasSubstr("openapi: 3.1.0"));
  Submit();
  const std::string metrics = Ask("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("atunner_jobs{state=\"queued\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("atunner_jobs_submitted_total 1\n"));
}

TEST_F(ApiTest, ThePageIsThereWithAndWithoutCompression) {
  const http::Response plain = Ask("GET", "/");
  EXPECT_EQ(plain.headers.Get("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(plain.body, HasSubstr("<!doctype html>"));
  EXPECT_THAT(plain.headers.Get("Content-Security-Policy"), HasSubstr("script-src 'self'"));
  const http::Response packed = Ask("GET", "/", "", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(packed.headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(Unpacked(packed.body), plain.body);
  EXPECT_EQ(Ask("GET", "/", "", {{"If-None-Match", plain.headers.Get("ETag")}}).status, 304);
  EXPECT_EQ(Ask("GET", "/runs/some-run").body, plain.body);  // the page's own addresses
  EXPECT_EQ(Ask("GET", "/none.js").status, 404);
  EXPECT_FALSE(Unpacked("no gzip"));
}

TEST_F(ApiTest, LongAnswersArePackedForThoseWhoAskForIt) {
  const http::Headers gzip{{"Accept-Encoding", "gzip, br"}};
  const http::Response plain = Ask("GET", "/api/v1/devices");
  const http::Response packed = Ask("GET", "/api/v1/devices", "", gzip);
  EXPECT_FALSE(plain.headers.Has("Content-Encoding"));
  EXPECT_EQ(packed.headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.headers.Get("Vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size() * 3, plain.body.size());
  EXPECT_EQ(Unpacked(packed.body), plain.body);
  EXPECT_FALSE(Ask("GET", "/healthz", "", gzip).headers.Has("Content-Encoding"));
}

TEST_F(ApiTest, TheAuditLogIsShownToAdministrators) {
  Submit();
  const Json first = Get("/api/v1/audit")["entries"][0];
  EXPECT_EQ(first["method"], "POST");
  EXPECT_EQ(first["path"], "/api/v1/jobs");
  EXPECT_EQ(Get("/api/v1/audit?limit=1")["entries"].size(), 1);
  EXPECT_EQ(Ask("GET", "/api/v1/audit?limit=0").status, 422);
}

TEST_F(ApiTest, TheHandbookIsListedFoundAndShown) {
  EXPECT_GT(Get("/api/v1/knowledge")["pages"].size(), 5);
  const Json found = Get("/api/v1/knowledge?q=shared%20memory%20bank%20conflicts&limit=3");
  ASSERT_FALSE(found["pages"].empty());
  const std::string name = found["pages"][0]["name"];
  EXPECT_EQ(Get("/api/v1/knowledge/" + name)["name"], name);
  EXPECT_EQ(Ask("GET", "/api/v1/knowledge/none").status, 404);
}

TEST(Metrics, LabelsAreEscaped) {
  EXPECT_EQ(Label("a", "b\"c\\d\ne"), "{a=\"b\\\"c\\\\d e\"}");
  Metrics metrics;
  metrics.Add("atunner_trials_total", Label("verdict", "correct"), 2);
  EXPECT_THAT(metrics.Text(), HasSubstr("atunner_trials_total{verdict=\"correct\"} 2\n"));
}

TEST(Routes, EveryRouteIsInTheContractAndTheReverse) {
  const std::string contract = ReadFile(ATUNNER_SOURCE_DIR "/faces/serve/openapi.yaml").value();
  size_t paths = 0;
  for (size_t at = contract.find("\n  /"); at != std::string::npos;
       at = contract.find("\n  /", at + 1))
    ++paths;
  std::set<std::string_view> patterns;
  for (const Route& route : AllRoutes()) {
    patterns.insert(route.pattern);
    EXPECT_THAT(contract, HasSubstr("\n  " + std::string(route.pattern) + ":\n"));
  }
  EXPECT_EQ(patterns.size(), paths);
}

}  // namespace
}  // namespace atunner::serve
