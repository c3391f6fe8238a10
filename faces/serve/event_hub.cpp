#include "faces/serve/event_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace atunner::serve {
namespace {

constexpr int kEventsAtOnce = 500;
constexpr size_t kMostWaiting = size_t{256} << 10;
/// Other processes may write to the queue too.
constexpr std::chrono::milliseconds kLook{500};
constexpr std::chrono::milliseconds kLookAgain{20};

}  // namespace

EventHub::EventHub(queue::Queue& queue, JobText job_text)
    : queue_(queue), job_text_(std::move(job_text)), thread_([this] { Loop(); }) {}

EventHub::~EventHub() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (Subscription& one : subscriptions_) one.stream->Finish();
}

std::shared_ptr<http::Stream> EventHub::Subscribe(const std::string& job, int64_t after) {
  const auto stream = std::make_shared<http::Stream>();
  {
    const std::scoped_lock lock(mutex_);
    subscriptions_.push_back({job, after, stream});
  }
  Wake();
  return stream;
}

void EventHub::Wake() {
  {
    const std::scoped_lock lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

size_t EventHub::subscribers() const {
  const std::scoped_lock lock(mutex_);
  return subscriptions_.size();
}

void EventHub::Loop() {
  std::unique_lock lock(mutex_);
  bool more = false;
  while (!ending_) {
    changed_.wait_for(lock, more ? kLookAgain : kLook, [this] { return woken_ || ending_; });
    woken_ = false;
    more = false;
    const auto last = queue_.LastEvent();
    if (!last) continue;
    last_ = *last;
    for (Subscription& one : subscriptions_) more |= Serve(one);
    subscriptions_.remove_if([](const Subscription& one) { return one.stream->closed(); });
  }
}

bool EventHub::Serve(Subscription& subscription) {
  if (subscription.cursor >= last_ || subscription.stream->closed()) return false;
  if (subscription.stream->waiting() > kMostWaiting) return true;
  const auto events = queue_.Events(subscription.job, subscription.cursor, kEventsAtOnce);
  if (!events) return true;
  for (const queue::Event& event : *events) Send(subscription, event);
  if (events->size() == static_cast<size_t>(kEventsAtOnce)) return true;
  subscription.cursor = std::max(subscription.cursor, last_);
  return false;
}

void EventHub::Send(Subscription& subscription, const queue::Event& event) {
  subscription.cursor = event.id;
  const bool about_job = event.type == "state" || event.type == "end";
  if (subscription.job.empty() && event.type != "state") return;
  const std::string data = about_job ? job_text_(event.job) : event.data;
  subscription.stream->Write(
      fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.type, data));
  if (event.type == "end") subscription.stream->Finish();
}

}  // namespace atunner::serve
