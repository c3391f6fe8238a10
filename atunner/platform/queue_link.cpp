#include "atunner/platform/queue_link.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "atunner/nats/jetstream.h"
#include "atunner/platform/job_messages.h"

namespace atunner::platform {
namespace {

/// After so long another worker gets a message whose job this one could not lease.
constexpr double kGiveBackSeconds = 5;

/// Used by one thread at a time, but for HeartBeat, which comes between Lease and End.
class QueueLink : public ServerLink {
 public:
  QueueLink(nats::Client& client, Clock& clock, QueueLinkOptions options, LinkMaker make)
      : client_(client),
        jetstream_(client),
        clock_(clock),
        options_(std::move(options)),
        make_(std::move(make)),
        answered_(clock.Now()),
        asked_(clock.Now() - options_.ask_seconds) {}

  Status OpenServer() {
    if (options_.server.empty()) return {};
    return Use(options_.server);
  }

  Result<std::optional<LeasedJob>> Lease(const WorkerDescription& worker,
                                         const Wanted& wanted) override {
    Forget();
    while (true) {
      const auto delivery = Next(worker);
      if (!delivery) return WithoutQueue(worker, wanted, delivery.error());
      answered_ = clock_.Now();
      if (!*delivery) break;
      ATUNNER_TRY(auto job, LeaseBy(**delivery, worker));
      if (job) return job;
    }
    if (options_.server.empty() || clock_.Now() - asked_ < options_.ask_seconds)
      return std::nullopt;
    asked_ = clock_.Now();
    return link_->Lease(worker, {.wait_seconds = 0});
  }

  Result<bool> HeartBeat(const LeasedJob& job) override {
    // A server of messages that is away is no reason to stop: the lease is what counts.
    if (held_) (void)jetstream_.StillWorking(*held_);
    return link_->HeartBeat(job);
  }
  Status SendEvents(const LeasedJob& job, int64_t batch, const Json& events,
                    const Json& progress) override {
    return link_->SendEvents(job, batch, events, progress);
  }
  Result<Path> Fetch(const std::string& upload, const Path& folder) override {
    return link_->Fetch(upload, folder);
  }
  Status PutArtifact(const LeasedJob& job, const std::string& path, const Path& file) override {
    return link_->PutArtifact(job, path, file);
  }
  Result<std::string> SendRun(const LeasedJob& job, const RunRecord& run,
                              const std::vector<Trial>& trials) override {
    return link_->SendRun(job, run, trials);
  }
  Status End(const LeasedJob& job, const std::string& state, const Json& result, const Json& error,
             bool retry) override {
    const Status ended = link_->End(job, state, result, error, retry);
    // A server that could not be told takes the job back, and has it announced anew.
    Forget();
    return ended;
  }

 private:
  /// The message of the last job is done with.
  void Forget() {
    if (held_) (void)jetstream_.Acknowledge(*held_);
    held_.reset();
  }

  Status Use(const std::string& server) {
    if (!links_.contains(server)) {
      ATUNNER_TRY(links_[server], make_(server));
    }
    link_ = links_[server].get();
    return {};
  }

  Result<std::optional<nats::Delivery>> Next(const WorkerDescription& worker) {
    const std::string& stream = client_.url().name;
    const auto consumers = jetstream_.Consumers(stream);
    // A stream that no server has made yet holds no messages.
    if (!consumers && consumers.error().code == ErrorCode::kNotFound) return std::nullopt;
    if (!consumers) return std::unexpected(consumers.error());
    std::vector<std::string> names;
    for (const nats::ConsumerState& one : *consumers) {
      if (one.Lag() > 0) names.push_back(one.name);
    }
    for (const std::string& name : ConsumersFor(LabelsOf(worker), std::move(names))) {
      ATUNNER_TRY(auto delivery, jetstream_.Pull(stream, name));
      if (delivery) return delivery;
    }
    return std::nullopt;
  }

  /// Asks the server for the job of a message. nullopt, and the message is gone, if the job waits
  /// no longer.
  Result<std::optional<LeasedJob>> LeaseBy(const nats::Delivery& delivery,
                                           const WorkerDescription& worker) {
    held_ = delivery;
    const auto message = ParseJobMessage(delivery.payload);
    if (!message) {
      Forget();
      return std::nullopt;
    }
    Status found = options_.server.empty() ? Use(message->server) : Status();
    Result<std::optional<LeasedJob>> job = std::nullopt;
    if (found)
      job = link_->Lease(worker, {.job = message->job, .wait_seconds = 0});
    else
      job = std::unexpected(found.error());
    if (!job) {
      (void)jetstream_.GiveBack(delivery, kGiveBackSeconds);
      held_.reset();
    } else if (!*job) {
      Forget();
    }
    return job;
  }

  /// What to do while the server of messages does not answer.
  Result<std::optional<LeasedJob>> WithoutQueue(const WorkerDescription& worker,
                                                const Wanted& wanted, const Error& error) {
    const bool passing = error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
    if (!passing) return std::unexpected(error);
    if (!options_.server.empty()) return link_->Lease(worker, wanted);
    if (clock_.Now() - answered_ > options_.patience_seconds) return std::unexpected(error);
    return std::nullopt;
  }

  nats::Client& client_;
  nats::JetStream jetstream_;
  Clock& clock_;
  QueueLinkOptions options_;
  LinkMaker make_;
  std::map<std::string, std::unique_ptr<ServerLink>> links_;  ///< by address
  ServerLink* link_ = nullptr;                                ///< of the current job
  std::optional<nats::Delivery> held_;                        ///< the message of the current job
  double answered_;  ///< when the nats-server answered last
  double asked_;     ///< when the server was asked for any job
};

}  // namespace

Result<std::unique_ptr<ServerLink>> MakeQueueLink(nats::Client& client, Clock& clock,
                                                  const QueueLinkOptions& options, LinkMaker make) {
  auto link = std::make_unique<QueueLink>(client, clock, options, std::move(make));
  ATUNNER_RETURN_IF_ERROR(link->OpenServer());
  return link;
}

}  // namespace atunner::platform
