#include "atunner/platform/job_announcer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "atunner/model/json/json.h"
#include "atunner/platform/job_messages.h"

namespace atunner::platform {
namespace {

/// How often stream and queue are compared although no job changed.
constexpr double kCompareSeconds = 5;
/// With many jobs in the queue it compares for at most a fifth of the time.
constexpr double kPauses = 4;
constexpr int kMostDeliveries = 20;
constexpr int kJobsAtOnce = 1000;
/// A job of a class beyond these is not announced; workers that ask the server itself find it.
constexpr size_t kMostClasses = 300;
constexpr size_t kLongestClass = 200;
constexpr std::string_view kUndelivered = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.";

}  // namespace

JobAnnouncer::JobAnnouncer(queue::Queue& queue, nats::Client& client, Clock& clock,
                           AnnouncerOptions options)
    : queue_(queue),
      client_(client),
      jetstream_(client),
      clock_(clock),
      options_(std::move(options)),
      stream_(client.url().name) {
  client_.Subscribe(fmt::format("{}{}.*", kUndelivered, stream_));
}

Status JobAnnouncer::Look() {
  if (!has_stream_)
    ATUNNER_RETURN_IF_ERROR(
        jetstream_.EnsureStream({.name = stream_, .subjects = stream_ + ".jobs.>"}));
  has_stream_ = true;
  ATUNNER_RETURN_IF_ERROR(AbandonUndelivered());
  ATUNNER_TRY(const int64_t last, queue_.LastEvent());
  const double since = clock_.Now() - compared_;
  if (last == seen_event_ ? since < kCompareSeconds : since < kPauses * comparison_) return {};
  const double begin = clock_.Now();
  const Status compared = Compare();
  if (!compared) {
    seen_event_ = -1;
    // The nats-server may have lost its memory; the next look makes what is missing.
    has_stream_ = false;
    return compared;
  }
  seen_event_ = last;
  compared_ = clock_.Now();
  comparison_ = compared_ - begin;
  return {};
}

Status JobAnnouncer::Compare() {
  ATUNNER_TRY(const std::vector<std::string> present, jetstream_.Subjects(stream_));
  ATUNNER_TRY(consumers_, jetstream_.Consumers(stream_));
  ATUNNER_TRY(const std::vector<queue::Job> jobs, WaitingJobs());
  ATUNNER_RETURN_IF_ERROR(PublishMissing(jobs, present));
  ATUNNER_RETURN_IF_ERROR(RemoveOld(jobs, present));
  return RemoveStuck(jobs, present);
}

/// Oldest first, so that messages keep the order of submission.
Result<std::vector<queue::Job>> JobAnnouncer::WaitingJobs() {
  std::vector<queue::Job> jobs;
  while (true) {
    ATUNNER_TRY(queue::JobPage page, queue_.List({.states = {queue::State::kQueued},
                                                  .limit = kJobsAtOnce,
                                                  .offset = static_cast<int>(jobs.size())}));
    std::ranges::move(page.jobs, std::back_inserter(jobs));
    if (page.jobs.size() < kJobsAtOnce) break;
  }
  std::ranges::reverse(jobs);
  return jobs;
}

bool JobAnnouncer::HasConsumer(std::string_view name) const {
  return std::ranges::find(consumers_, name, &nats::ConsumerState::name) != consumers_.end();
}

Status JobAnnouncer::PublishMissing(const std::vector<queue::Job>& jobs,
                                    const std::vector<std::string>& present) {
  const std::set<std::string, std::less<>> stored(present.begin(), present.end());
  for (const queue::Job& job : jobs) {
    if (!stored.contains(SubjectOf(stream_, job))) ATUNNER_RETURN_IF_ERROR(Announce(job));
  }
  return {};
}

Status JobAnnouncer::Announce(const queue::Job& job) {
  const std::string consumer = ConsumerOf(job);
  if (!HasConsumer(consumer)) {
    if (consumer.size() > kLongestClass || consumers_.size() >= kMostClasses) return {};
    ATUNNER_RETURN_IF_ERROR(
        jetstream_.EnsureConsumer(stream_, {.name = consumer,
                                            .subject = SubjectsOf(stream_, consumer),
                                            .acknowledge_seconds = options_.lease_seconds,
                                            .max_deliveries = kMostDeliveries}));
    consumers_.push_back({consumer, 0, 0});
  }
  return jetstream_.PublishOnce(SubjectOf(stream_, job), ToText({job.id, options_.server}));
}

/// The message of a running job stays: its worker acknowledges it at the end, and until then it
/// counts as work.
Status JobAnnouncer::RemoveOld(const std::vector<queue::Job>& jobs,
                               const std::vector<std::string>& present) {
  std::set<std::string, std::less<>> waiting;
  for (const queue::Job& job : jobs) waiting.insert(SubjectOf(stream_, job));
  for (const std::string& subject : present) {
    if (waiting.contains(subject)) continue;
    if (const auto parsed = ParseSubject(stream_, subject)) {
      const auto job = queue_.Find(parsed->job);
      if (!job && job.error().code != ErrorCode::kNotFound) return std::unexpected(job.error());
      if (job && job->state == queue::State::kRunning) continue;
      if (job && SubjectOf(stream_, *job) == subject) continue;  // it waits since a moment ago
    }
    ATUNNER_RETURN_IF_ERROR(jetstream_.Remove(stream_, subject));
  }
  return {};
}

/// A nats-server that was killed may keep messages that its consumer counts as delivered and
/// acknowledged. A consumer with nothing to deliver and nothing delivered cannot hold a message.
Status JobAnnouncer::RemoveStuck(const std::vector<queue::Job>& jobs,
                                 const std::vector<std::string>& present) {
  const std::set<std::string, std::less<>> stored(present.begin(), present.end());
  for (const queue::Job& job : jobs) {
    const std::string consumer = ConsumerOf(job);
    const auto state = std::ranges::find(consumers_, consumer, &nats::ConsumerState::name);
    const std::string subject = SubjectOf(stream_, job);
    if (!stored.contains(subject)) continue;
    const bool exists = state != consumers_.end();  // else Announce makes it
    if (exists && state->Lag() > 0) continue;
    if (exists) ATUNNER_RETURN_IF_ERROR(jetstream_.Remove(stream_, subject));
    ATUNNER_RETURN_IF_ERROR(Announce(job));
  }
  return {};
}

Status JobAnnouncer::AbandonUndelivered() {
  for (const nats::Message& message : client_.Received()) {
    const auto advisory = ParseJson(message.payload, "advisory");
    if (!message.subject.starts_with(kUndelivered) || !advisory || !advisory->is_object()) continue;
    const auto sequence = advisory->find("stream_seq");
    if (sequence == advisory->end() || !sequence->is_number_unsigned()) continue;
    ATUNNER_RETURN_IF_ERROR(AbandonMessage(sequence->get<uint64_t>()));
  }
  return {};
}

Status JobAnnouncer::AbandonMessage(uint64_t sequence) {
  const auto subject = jetstream_.SubjectOf(stream_, sequence);
  if (!subject && subject.error().code == ErrorCode::kNotFound) return {};
  if (!subject) return std::unexpected(subject.error());
  const auto parsed = ParseSubject(stream_, *subject);
  if (!parsed) return {};
  const Json error{
      {"code", "unavailable"},
      {"detail", fmt::format("{} workers got the message of this job and did not take it from {}",
                             kMostDeliveries, options_.server)},
      {"hint",
       "the workers' logs say why: can they reach this address (--advertise), and do "
       "their tokens have the scope work?"}};
  const auto abandoned = queue_.Abandon(parsed->job, parsed->version, DumpJson(error));
  if (!abandoned) return std::unexpected(abandoned.error());
  return {};
}

}  // namespace atunner::platform
