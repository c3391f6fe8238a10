// Worker processes. A worker is this same executable started with other arguments; parent and
// worker exchange whole messages over a socket. Work that may crash, hang or corrupt its CUDA
// context runs in a worker, which can be killed and started again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner {

struct WorkerOptions {
  Path executable;                       ///< empty: this program
  std::vector<std::string> arguments;    ///< e.g. {"__runner", "--device", "0"}
  std::vector<std::string> environment;  ///< "K=V" added to the parent's
  int niceness = 0;                      ///< added to the parent's
  /// RLIMIT_AS of the worker; 0 = unlimited (CUDA reserves huge ranges)
  uint64_t address_space_bytes = 0;
};

/// Why a worker no longer answers.
struct WorkerDeath {
  bool timed_out = false;
  int signal = 0;          ///< the signal that ended it, 0 if it exited
  int exit_code = 0;       ///< when it exited by itself
  std::string last_words;  ///< the end of its standard error, at most 4 KiB

  std::string ToString() const;
};

/// The parent's end of the channel. Not thread-safe: one caller at a time.
class WorkerProcess {
 public:
  static Result<WorkerProcess> Start(const WorkerOptions& options);
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;

  /// Sends one message and waits for the answer. On a time-out the worker is killed and the error
  /// is kTimeout; when it died by itself the error is kUnavailable. `death()` then says more. A
  /// stop that is requested counts as a time-out.
  Result<std::string> Call(std::string_view request, double timeout_seconds,
                           const std::stop_token& stop = {});

  bool alive() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  const std::optional<WorkerDeath>& death() const { return death_; }
  void Kill();

 private:
  WorkerProcess() = default;
  void Reap(bool timed_out);
  /// Ends the process; its wait status.
  int EndProcess(bool timed_out);

  pid_t pid_ = -1;
  int socket_ = -1;
  int stderr_file_ = -1;
  std::optional<WorkerDeath> death_;
};

/// The worker's end: file descriptor 3. Constructing it starts a watcher that ends this process
/// when the parent is gone, however busy the main thread is.
class WorkerChannel {
 public:
  WorkerChannel();

  /// The next request; nullopt when the parent closed the channel.
  std::optional<std::string> Receive();
  /// False when the parent is gone.
  bool Send(std::string_view answer);
};

}  // namespace atunner
