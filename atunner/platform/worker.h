// A worker: takes one job after the other from a server and runs it with the services of its own
// machine, exactly as the command line would.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/platform/server_link.h"

namespace atunner::platform {

struct WorkerOptions {
  WorkerDescription description;
  /// Jobs work in folders below, which are removed at their end.
  Path folder;
  /// The worker writes into the server's own store. Otherwise runs and trials are sent at the end.
  bool shares_store = false;
  double idle_seconds = 0.5;      ///< between two questions for a job
  double heart_beat_seconds = 1;  ///< also how soon a cancelled job stops
  int most_jobs = 0;              ///< it ends after so many; 0: any number
  double most_idle_seconds = 0;   ///< it ends after so long without a job; 0: never
};

/// Called with one line for each thing that happens: "j-…: begins".
using WorkerLog = std::function<void(const std::string&)>;

class Worker {
 public:
  /// All arguments must outlive the worker.
  Worker(const WorkerOptions& options, ServerLink& link, jobs::Services& services,
         const WorkerLog& log)
      : options_(options), link_(link), services_(services), log_(log) {}

  /// Works until `stop`, or as long as the options allow. A job that runs then is given back to the
  /// queue. An error ends the worker: the server refuses it, or cannot be reached for too long.
  Status Run(const std::stop_token& stop);
  /// Takes and runs one job. False if there was none.
  Result<bool> RunOne(const std::stop_token& stop);

 private:
  struct Outcome;
  void Work(const LeasedJob& job, const std::stop_token& stop);
  Result<bool> Tune(const LeasedJob& job, const Path& folder, const jobs::EventSink& events,
                    const std::stop_token& stop);
  Status SendArtifact(const LeasedJob& job, const Path& folder);
  /// Puts the server's ids of the runs into `progress`.
  Status SendRuns(const LeasedJob& job, Json& progress);
  Status Report(const LeasedJob& job, const Outcome& outcome);

  const WorkerOptions& options_;
  ServerLink& link_;
  jobs::Services& services_;
  const WorkerLog& log_;
};

/// {"code", "detail", "where", "hint"}, with fields as in the job's request.
Json ErrorJson(const Error& error);

}  // namespace atunner::platform
