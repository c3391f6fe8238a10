// Announces the server's jobs on a nats-server, from a thread of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/nats/client.h"
#include "atunner/nats/jetstream.h"
#include "atunner/platform/job_announcer.h"
#include "atunner/queue/queue.h"
#include "faces/serve/serve_context.h"

namespace atunner::serve {

class Announcements {
 public:
  /// nullptr without `options.queue`. `url` is the server's own address. A nats-server that is away
  /// is tried again and again. kInvalidInput at "--queue" or "--advertise" for wrong addresses and
  /// refused credentials. `queue` and `log` must outlive it.
  static Result<std::unique_ptr<Announcements>> Start(const ServeOptions& options,
                                                      const std::string& url, queue::Queue& queue,
                                                      Log& log);
  ~Announcements();

  /// Whether the nats-server answers, and what waits there by class of jobs.
  std::string MetricsText() const;

 private:
  Announcements(nats::Url url, const ServeOptions& options, const std::string& server,
                queue::Queue& queue, Log& log);
  void Loop();
  /// Notes what a look gave, and writes to the log when that changes.
  void Note(const Status& looked);

  Log& log_;
  nats::Client client_;
  platform::JobAnnouncer announcer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  bool connected_ = true;
  std::vector<nats::ConsumerState> consumers_;
  std::thread thread_;
};

}  // namespace atunner::serve
