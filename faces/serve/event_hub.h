// Sends the queue's events to all who listen, from one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "atunner/http/message.h"
#include "atunner/queue/queue.h"

namespace atunner::serve {

class EventHub {
 public:
  /// Writes the data of a "state" or "end" event: the job as it is now.
  using JobText = std::function<std::string(const std::string& job)>;

  EventHub(queue::Queue& queue, JobText job_text);
  ~EventHub();

  /// All events of `job` after `after`; the stream ends with the job's last event. An empty job:
  /// the changes of state of all jobs.
  std::shared_ptr<http::Stream> Subscribe(const std::string& job, int64_t after);
  /// Something happened: look at once.
  void Wake();
  size_t subscribers() const;

 private:
  struct Subscription {
    std::string job;
    int64_t cursor = 0;
    std::shared_ptr<http::Stream> stream;
  };
  void Loop();
  /// True if there is more to send than was sent.
  bool Serve(Subscription& subscription);
  void Send(Subscription& subscription, const queue::Event& event);

  queue::Queue& queue_;
  JobText job_text_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Subscription> subscriptions_;
  int64_t last_ = 0;
  bool woken_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace atunner::serve
