// All that the routes share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/knowledge/document_index.h"
#include "atunner/mcp/transport/endpoint.h"
#include "atunner/model/json/json.h"
#include "atunner/platform/access.h"
#include "atunner/platform/job_files.h"
#include "atunner/platform/run_pages.h"
#include "atunner/platform/server_link.h"
#include "atunner/queue/queue.h"
#include "faces/serve/event_hub.h"
#include "faces/serve/metrics.h"
#include "faces/serve/rate_limits.h"

namespace atunner::serve {

class Announcements;
class TraceExporter;

struct ServeOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 8080;
  Path store;       ///< the file of runs and trials
  Path data;        ///< folder of queue, tokens, uploads and artifacts
  int workers = 1;  ///< processes on this machine; 0: only remote workers
  bool require_tokens = false;
  uint64_t upload_bytes = uint64_t{64} << 20;
  double lease_seconds = 30;
  Path tls_certificate;  ///< PEM files; with both the server speaks HTTPS only
  Path tls_key;
  /// The most requests of one token, on average; 0: any number. Without tokens none is limited.
  double requests_per_second = 100;
  std::string otlp;           ///< URL of the collector of traces; "" for none
  std::string queue;          ///< nats://… or tls://…: jobs are announced there, too; "" for not
  std::string advertise;      ///< the server's address in such messages; "": the one it listens on
  Path authorities;           ///< of the nats-server's certificate, beside the system's
  bool mcp_fixtures = false;  ///< /mcp offers what the conformance suite asks for instead
};

/// One line of JSON on standard error for each thing that happens.
class Log {
 public:
  void Write(const char* level, const char* message, Json fields);

 private:
  std::mutex mutex_;
};

/// Who changed what, and who was refused: one line of JSON each, in a file that only its owner can
/// read. It is kept until someone removes it.
class AuditLog {
 public:
  /// kUnavailable where the file cannot be opened.
  static Result<std::unique_ptr<AuditLog>> Open(const Path& file);
  ~AuditLog();
  void Write(Json fields);
  /// The last lines as an array, newest first.
  Result<Json> Last(size_t most) const;

 private:
  AuditLog(int file, Path path) : file_(file), path_(std::move(path)) {}
  int file_;
  Path path_;
};

/// Who asked for work lately.
class WorkerBook {
 public:
  void Saw(const platform::WorkerDescription& worker, const std::string& job);
  void SawJob(const std::string& job);
  void Left(const std::string& job);
  /// {"name", "gpus", "labels", "job", "last_seen_seconds"} of each.
  Json ToJson() const;
  size_t count() const;

 private:
  struct Entry {
    platform::WorkerDescription worker;
    std::string job;
    double seen = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

/// The last answers about jobs by their version, so that many who watch one job cost little.
class JobTexts {
 public:
  /// The text that was kept for this version; else that of `make`, which is kept.
  std::string Get(const queue::Job& job, const std::function<std::string()>& make);

 private:
  struct Entry {
    int64_t version = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

struct ServeContext {
  const ServeOptions& options;
  queue::Queue& queue;
  platform::RunPages& pages;
  platform::Tokens& tokens;
  knowledge::DocumentIndex& handbook;
  jobs::Services& services;
  Log& log;
  AuditLog& audit;
  platform::Uploads uploads;
  /// The secret of the workers that this server starts.
  std::string worker_secret;
  Metrics metrics;
  WorkerBook workers;
  RateLimits rates;
  JobTexts job_texts;
  std::atomic<bool> draining = false;
  double begin = 0;  ///< of the server, by services.clock
  std::mutex handbook_lock;
  /// Runs that remote workers send, one at a time.
  std::mutex imports;
  /// Ends first: it reads the rest.
  std::unique_ptr<EventHub> hub;
  mcp::Endpoint* mcp = nullptr;     ///< /mcp
  TraceExporter* traces = nullptr;  ///< null: spans are not recorded
  /// null: jobs are not announced, or not yet
  std::atomic<Announcements*> announcements = nullptr;

  Path ArtifactsOf(const std::string& job) const { return options.data / "artifacts" / job; }
  Path Incoming() const { return options.data / "incoming"; }
};

}  // namespace atunner::serve
