#include "faces/serve/serve.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/http/origin.h"
#include "atunner/http/server.h"
#include "atunner/mcp/fixtures.h"
#include "atunner/mcp/server.h"
#include "atunner/queue/sqlite_queue.h"
#include "faces/serve/announcements.h"
#include "faces/serve/api.h"
#include "faces/serve/job_json.h"
#include "faces/serve/local_workers.h"
#include "faces/serve/trace_exporter.h"

namespace atunner::serve {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr double kDrainSeconds = 10;
constexpr double kExpireEverySeconds = 1;

/// Addresses beyond this machine are only for those who have tokens.
Status CheckAccess(ServeOptions& options, platform::Tokens& tokens) {
  if (http::IsLoopbackHost(options.address) && !options.require_tokens) return {};
  options.require_tokens = true;
  ATUNNER_TRY(const auto known, tokens.List());
  if (known.empty())
    return Invalid("others could use this address, and there is no token yet", "--listen",
                   "make one: atunner token create --name ci --scope submit,read --store " +
                       options.store.string());
  return {};
}

/// A folder for bodies on their way to disk; those of a killed server are removed.
Status PrepareFolders(const ServeOptions& options) {
  std::error_code ignored;
  std::filesystem::remove_all(options.data / "incoming", ignored);
  for (const char* name : {"incoming", "uploads", "artifacts"})
    ATUNNER_RETURN_IF_ERROR(MakeDirectories(options.data / name));
  std::filesystem::permissions(options.data, std::filesystem::perms::owner_all, ignored);
  return {};
}

std::string UrlOf(const ServeOptions& options, uint16_t port) {
  std::string host = options.address;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  const char* const scheme = options.tls_certificate.empty() ? "http" : "https";
  return fmt::format("{}://{}:{}", scheme, host, port);
}

/// Takes jobs from workers that no longer answer, and makes spans of jobs that ended. For the first
/// lease's length after its begin a server that was down waits for their heart-beats.
void WatchJobs(ServeContext& context, JobTracer* tracer, const std::stop_token& stop) {
  double next = SystemClock().Now() + context.options.lease_seconds;
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kLook);
    if (tracer != nullptr) tracer->Look();
    if (SystemClock().Now() < next) continue;
    next = SystemClock().Now() + kExpireEverySeconds;
    const auto expired = context.queue.ExpireLeases();
    if (!expired || *expired == 0) continue;
    context.metrics.Add("atunner_leases_expired_total", "", *expired);
    context.log.Write("warning", "leases expired", {{"jobs", *expired}});
    context.hub->Wake();
  }
}

/// The parts of a server, in the order in which they need each other.
struct Parts {
  std::unique_ptr<queue::SqliteQueue> queue;
  std::unique_ptr<platform::Tokens> tokens;
  std::unique_ptr<platform::RunPages> pages;
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<knowledge::DocumentIndex> handbook;
};

Result<Parts> OpenParts(const ServeOptions& options, jobs::Services& services) {
  Parts parts;
  ATUNNER_RETURN_IF_ERROR(services.stores.Open());  // makes and migrates the store
  ATUNNER_TRY(parts.queue, queue::SqliteQueue::Open(options.data / "queue.db"));
  ATUNNER_TRY(parts.tokens, platform::Tokens::Open(options.data / "tokens.db"));
  ATUNNER_TRY(parts.pages, platform::RunPages::Open(options.store));
  ATUNNER_TRY(parts.handbook, knowledge::DocumentIndex::Open(""));  // in memory
  ATUNNER_TRY(parts.audit, AuditLog::Open(options.data / "audit.jsonl"));
  return parts;
}

/// Work until `stop`; then first the workers end, who still need the server, and then the rest.
Status ServeUntil(ServeContext& context, http::Server& server, const std::string& url,
                  const std::stop_token& stop) {
  std::optional<LocalWorkers> workers;
  workers.emplace(LocalWorkersOptions{context.options.workers, url, context.worker_secret,
                                      context.options.store, context.options.data / "work"},
                  context.queue, context.log);
  std::optional<JobTracer> tracer;
  if (context.traces != nullptr) tracer.emplace(context.queue, *context.traces);
  WatchJobs(context, tracer ? &*tracer : nullptr, stop);
  context.log.Write("info", "ending", {});
  context.draining = true;
  workers.reset();
  if (tracer) tracer->Look();
  context.mcp->CancelAll();
  server.Drain(kDrainSeconds);
  return {};
}

/// Workers of this machine do not know the names in the certificate: beside HTTPS they have a port
/// in plain text on the loopback address, with the same tokens. nullptr where it is not needed.
Result<std::unique_ptr<http::Server>> StartInner(const ServeOptions& options, Api& api) {
  if (options.tls_certificate.empty() || options.workers == 0) return nullptr;
  return http::Server::Start({.threads = 1}, api);
}

}  // namespace

Status ParseListen(const std::string& text, ServeOptions& options) {
  const size_t colon = text.rfind(':');
  const auto wrong = Invalid("'" + text + "' is no address with a port", "--listen",
                             "for example 127.0.0.1:8080");
  if (colon == std::string::npos || colon == 0) return wrong;
  options.address = text.substr(0, colon);
  if (options.address.starts_with('[') && options.address.ends_with(']'))
    options.address = options.address.substr(1, options.address.size() - 2);
  if (options.address == "localhost") options.address = "127.0.0.1";
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + colon + 1, end, options.port);
  if (error != std::errc() || at != end) return wrong;
  return {};
}

Path DataFolder(const Path& store) { return store.string() + ".serve"; }

Status Serve(ServeOptions options, jobs::Services& services,
             const std::function<void(const std::string&)>& ready, const std::stop_token& stop) {
  ATUNNER_RETURN_IF_ERROR(PrepareFolders(options));
  ATUNNER_TRY(const Parts parts, OpenParts(options, services));
  ATUNNER_RETURN_IF_ERROR(CheckAccess(options, *parts.tokens));
  ATUNNER_TRY(std::string secret, platform::RandomHex(32));
  Log log;
  ServeContext context{options,       *parts.queue,    *parts.pages,
                       *parts.tokens, *parts.handbook, services,
                       log,           *parts.audit,    platform::Uploads(options.data / "uploads"),
                       secret};
  context.begin = services.clock.Now();
  std::unique_ptr<TraceExporter> traces;
  if (!options.otlp.empty()) {
    ATUNNER_TRY(traces, TraceExporter::Start(options.otlp, log, context.metrics));
    context.traces = traces.get();
  }
  context.hub = std::make_unique<EventHub>(
      *parts.queue, [&context](const std::string& job) { return JobText(job, context); });
  ATUNNER_TRY(const auto mcp_server, mcp::Server::Make(services, {.files = false}));
  mcp::Endpoint endpoint(options.mcp_fixtures ? mcp::ConformanceFixtures() : mcp_server->offer(),
                         services.clock);
  context.mcp = &endpoint;
  Api api(context);
  http::ServerOptions http_options;
  http_options.address = options.address;
  http_options.port = options.port;
  http_options.tls_certificate = options.tls_certificate;
  http_options.tls_key = options.tls_key;
  std::unique_ptr<Announcements> announcements;  // outlives the server, whose metrics read it
  ATUNNER_TRY(const auto server, http::Server::Start(http_options, api));
  ATUNNER_TRY(const auto inner, StartInner(options, api));
  const std::string url = UrlOf(options, server->port());
  ATUNNER_TRY(announcements, Announcements::Start(options, url, *parts.queue, log));
  context.announcements = announcements.get();
  log.Write("info", "ready", {{"url", url}, {"tokens", options.require_tokens}});
  ready(url);
  return ServeUntil(context, *server, inner ? UrlOf({}, inner->port()) : url, stop);
}

}  // namespace atunner::serve
