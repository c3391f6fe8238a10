#include "atunner/platform/worker.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "atunner/platform/job_files.h"
#include "atunner/platform/job_progress.h"
#include "atunner/platform/job_request.h"
#include "atunner/platform/job_runner.h"

namespace atunner::platform {
namespace {

bool IsLostLease(const Error& error) { return error.where == "lease"; }

/// Keeps the lease of one job from a thread of its own, and sends what happens.
class Reporter {
 public:
  Reporter(ServerLink& link, const LeasedJob& job, double interval, const std::stop_token& stop)
      : link_(link),
        job_(job),
        interval_(interval),
        outer_(stop, [this] { stop_.request_stop(); }) {
    thread_ = std::thread([this] { Loop(); });
  }
  ~Reporter() { Finish(); }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

  void Add(const jobs::Event& event) {
    const std::scoped_lock lock(mutex_);
    progress_.Add(event);
    const Json shown = progress_.Shown(event);
    waiting_.push_back({{"type", KindOf(shown)}, {"data", shown}});
  }
  /// Sends what is left, and ends the thread.
  void Finish() {
    {
      const std::scoped_lock lock(mutex_);
      if (finished_) return;
      finished_ = true;
    }
    changed_.notify_all();
    thread_.join();
    Flush();
  }
  Json Progress() {
    const std::scoped_lock lock(mutex_);
    return progress_.ToJson();
  }
  bool cancelled() const { return cancelled_; }
  bool lost() const { return lost_; }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    const auto interval = std::chrono::duration<double>(interval_);
    do {
      changed_.wait_for(lock, interval, [this] { return finished_; });
      lock.unlock();
      Beat();
      Flush();
      lock.lock();
    } while (!finished_ && !lost_);
  }

  void Beat() {
    const auto cancel = link_.HeartBeat(job_);
    if (!cancel) return Note(cancel.error());
    if (!*cancel) return;
    cancelled_ = true;
    stop_.request_stop();
  }

  void Flush() {
    Json events = Json::array();
    Json progress;
    {
      const std::scoped_lock lock(mutex_);
      std::swap(events, waiting_);
      progress = progress_.ToJson();
    }
    if (events.empty() || lost_) return;
    if (const Status sent = link_.SendEvents(job_, ++batch_, events, progress); !sent)
      Note(sent.error());
  }

  /// Another worker may have the job by now: this one must not go on.
  void Note(const Error& error) {
    if (!IsLostLease(error)) return;
    lost_ = true;
    stop_.request_stop();
  }

  ServerLink& link_;
  const LeasedJob& job_;
  double interval_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> outer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  JobProgress progress_;
  Json waiting_ = Json::array();
  int64_t batch_ = 0;
  bool finished_ = false;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> lost_ = false;
  std::thread thread_;
};

bool MayMend(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kInternal;
}

void RemoveFolder(const Path& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace

struct Worker::Outcome {
  Result<bool> found = false;
  Json progress;
  bool cancelled = false;
  bool stopping = false;  ///< the worker itself was told to end
};

Json ErrorJson(const Error& error) {
  const FieldProblem problem = ProblemOf(error);
  return {{"code", Name(error.code)},
          {"detail", problem.detail},
          {"where", problem.field},
          {"hint", problem.hint}};
}

Status Worker::Run(const std::stop_token& stop) {
  int jobs = 0;
  double idle_since = services_.clock.Now();
  while (!stop.stop_requested()) {
    ATUNNER_TRY(const bool worked, RunOne(stop));
    if (worked) idle_since = services_.clock.Now();
    if (worked && ++jobs == options_.most_jobs) return {};
    if (worked || stop.stop_requested()) continue;
    if (options_.most_idle_seconds > 0 &&
        services_.clock.Now() - idle_since >= options_.most_idle_seconds)
      return {};
    services_.clock.Sleep(options_.idle_seconds);
  }
  return {};
}

Result<bool> Worker::RunOne(const std::stop_token& stop) {
  ATUNNER_TRY(const auto job, link_.Lease(options_.description, {}));
  if (!job) return false;
  log_(job->id + ": begins");
  Work(*job, stop);
  return true;
}

void Worker::Work(const LeasedJob& job, const std::stop_token& stop) {
  const Path folder = options_.folder / job.id;
  RemoveFolder(folder);  // of an attempt that was killed
  Outcome outcome;
  {
    Reporter reporter(link_, job, options_.heart_beat_seconds, stop);
    outcome.found = Tune(
        job, folder, [&](const jobs::Event& event) { reporter.Add(event); }, reporter.token());
    if (const Status sent = SendArtifact(job, folder / "artifact"); !sent && outcome.found)
      outcome.found = std::unexpected(sent.error());
    outcome.progress = reporter.Progress();
    if (const Status sent = SendRuns(job, outcome.progress); !sent && outcome.found)
      outcome.found = std::unexpected(sent.error());
    reporter.Finish();
    outcome.cancelled = reporter.cancelled();
    outcome.stopping = stop.stop_requested();
    if (reporter.lost()) {
      log_(job.id + ": another worker has it now");
      return RemoveFolder(folder);
    }
  }
  const Status told = Report(job, outcome);
  log_(job.id + (told ? ": ended" : ": " + told.error().ToString()));
  RemoveFolder(folder);
}

Result<bool> Worker::Tune(const LeasedJob& job, const Path& folder, const jobs::EventSink& events,
                          const std::stop_token& stop) {
  auto request = ParseJobRequest(job.request);
  if (!request)
    return Invalid(request.error().front().detail, request.error().front().field,
                   request.error().front().hint);
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(folder / "upload"));
  Path upload;
  if (!request->upload.empty()) {
    ATUNNER_TRY(upload, link_.Fetch(request->upload, folder / "upload"));
  }
  return RunJob(*std::move(request), upload, folder / "artifact", services_, events, stop);
}

Status Worker::SendArtifact(const LeasedJob& job, const Path& folder) {
  for (const StoredFile& file : FilesBelow(folder)) {
    if (IsSafePath(file.path))
      ATUNNER_RETURN_IF_ERROR(link_.PutArtifact(job, file.path, folder / file.path));
  }
  return {};
}

Status Worker::SendRuns(const LeasedJob& job, Json& progress) {
  if (options_.shares_store || progress["runs"].empty()) return {};
  ATUNNER_TRY(const auto store, services_.stores.Open());
  for (Json& id : progress["runs"]) {
    ATUNNER_TRY(const RunRecord run, store->FindRun(id.get<std::string>()));
    ATUNNER_TRY(const std::vector<Trial> trials, store->Trials(run.id));
    ATUNNER_TRY(const std::string kept, link_.SendRun(job, run, trials));
    Json& best = progress["best"];
    if (best.is_object() && best["run"] == id) best["run"] = kept;
    id = kept;
  }
  return {};
}

Status Worker::Report(const LeasedJob& job, const Outcome& outcome) {
  const Json& progress = outcome.progress;
  if (outcome.cancelled) return link_.End(job, "cancelled", progress, {}, false);
  if (outcome.stopping)  // what was tried is in the store: the next attempt goes on from there
    return link_.End(job, "queued", progress, {}, false);
  if (!outcome.found)
    return link_.End(job, "failed", progress, ErrorJson(outcome.found.error()),
                     MayMend(outcome.found.error()));
  if (!*outcome.found)
    return link_.End(job, "failed", progress,
                     {{"code", "not-found"}, {"detail", "no correct kernel was found"}}, false);
  return link_.End(job, "succeeded", progress, {}, false);
}

}  // namespace atunner::platform
