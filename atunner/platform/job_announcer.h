// The server's end of the queue of messages: keeps a stream of NATS in agreement with the jobs that
// wait.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/nats/client.h"
#include "atunner/nats/jetstream.h"
#include "atunner/queue/queue.h"

namespace atunner::platform {

struct AnnouncerOptions {
  std::string server;         ///< the address that messages tell workers
  double lease_seconds = 30;  ///< a message without a sign of its worker is delivered again then
};

/// Publishes a message for every job that begins to wait, and removes those of jobs that no longer
/// do. It compares stream and queue anew each time, so that it does not matter which messages a
/// nats-server lost, kept or delivered twice.
class JobAnnouncer {
 public:
  /// All arguments must outlive it.
  JobAnnouncer(queue::Queue& queue, nats::Client& client, Clock& clock, AnnouncerOptions options);

  /// Looks once. Cheap while no job changes. Jobs whose message was delivered too often without
  /// that a worker took the job fail. An error means that the nats-server could not be asked.
  Status Look();
  /// What waits, by class of jobs, when it looked last.
  const std::vector<nats::ConsumerState>& consumers() const { return consumers_; }

 private:
  Status Compare();
  Status PublishMissing(const std::vector<queue::Job>& jobs,
                        const std::vector<std::string>& present);
  Status Announce(const queue::Job& job);
  Status RemoveOld(const std::vector<queue::Job>& jobs, const std::vector<std::string>& present);
  /// Removes messages that are stored but will not be delivered, so that they are published again.
  Status RemoveStuck(const std::vector<queue::Job>& jobs, const std::vector<std::string>& present);
  Status AbandonUndelivered();
  Status AbandonMessage(uint64_t sequence);
  Result<std::vector<queue::Job>> WaitingJobs();
  bool HasConsumer(std::string_view name) const;

  queue::Queue& queue_;
  nats::Client& client_;
  nats::JetStream jetstream_;
  Clock& clock_;
  AnnouncerOptions options_;
  std::string stream_;
  std::vector<nats::ConsumerState> consumers_;
  int64_t seen_event_ = -1;
  double compared_ = 0;    ///< when it compared last
  double comparison_ = 0;  ///< seconds that this took
  bool has_stream_ = false;
};

}  // namespace atunner::platform
