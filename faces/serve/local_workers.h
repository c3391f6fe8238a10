// The worker processes that a server starts on its own machine, and starts again when they die.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "faces/serve/serve_context.h"

namespace atunner::serve {

/// What the names of workers that a server starts begin with; other workers may not use it.
inline constexpr std::string_view kLocalWorkerPrefix = "local-";

struct LocalWorkersOptions {
  int count = 1;
  std::string server;  ///< "http://127.0.0.1:8080"
  std::string secret;  ///< goes to them in the environment, not on the command line
  Path store;
  Path folder;  ///< each works in a folder below
};

/// Workers end with the server, however it ends. Jobs of those that ended go back into the queue.
class LocalWorkers {
 public:
  LocalWorkers(LocalWorkersOptions options, queue::Queue& queue, Log& log);
  /// Asks the workers to end, waits for half a minute, and then kills them.
  ~LocalWorkers();

 private:
  void Loop();
  void StartMissing();
  void ReapEnded();
  pid_t Start(int number) const;
  /// Worker `number` has ended; `blame`: maybe because of its job.
  void Reclaim(int number, bool blame);

  LocalWorkersOptions options_;
  queue::Queue& queue_;
  Log& log_;
  std::vector<pid_t> children_;  ///< -1 for one that must be started
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  /// The children die with this thread (PR_SET_PDEATHSIG), so it lives as long as they do.
  std::thread thread_;
};

}  // namespace atunner::serve
