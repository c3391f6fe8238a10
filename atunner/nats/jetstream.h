// JetStream: streams of stored messages, and consumers that deliver them until they are
// acknowledged (https://docs.nats.io/reference/reference-protocols/nats_api_reference).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/nats/client.h"

namespace atunner::nats {

/// A stream from which each message is removed when it is acknowledged.
struct WorkStream {
  std::string name;
  std::string subjects;            ///< "name.jobs.>"
  double max_age_seconds = 86400;  ///< then a message is dropped, whatever became of it
};

/// What waits for one consumer.
struct ConsumerState {
  std::string name;
  int64_t pending = 0;      ///< never delivered
  int64_t outstanding = 0;  ///< delivered and not acknowledged
  int64_t Lag() const { return pending + outstanding; }
};

struct ConsumerOptions {
  std::string name;
  std::string subject;              ///< of the messages that it delivers; may have wildcards
  double acknowledge_seconds = 30;  ///< after so long without a sign a message is delivered again
  int max_deliveries = 20;
};

/// A message to work on.
struct Delivery {
  std::string subject;
  std::string payload;
  std::string reply;  ///< where acknowledgements go
};

/// The errors of Client; kNotFound where the stream, consumer or message does not exist.
class JetStream {
 public:
  /// `client` must outlive this.
  explicit JetStream(Client& client) : client_(client) {}

  /// Makes the stream, or changes the one of this name.
  Status EnsureStream(const WorkStream& stream);
  /// Makes the consumer if it does not exist.
  Status EnsureConsumer(const std::string& stream, const ConsumerOptions& options);
  /// The subjects of all stored messages. Do not take their number for a backlog: a nats-server
  /// that was killed may keep messages that were acknowledged.
  Result<std::vector<std::string>> Subjects(const std::string& stream);
  Result<std::vector<ConsumerState>> Consumers(const std::string& stream);
  /// Stores a message unless there is one of its subject.
  Status PublishOnce(const std::string& subject, std::string_view payload);
  /// Removes the last message of a subject, if there is one.
  Status Remove(const std::string& stream, const std::string& subject);
  /// The subject of the message of this number.
  Result<std::string> SubjectOf(const std::string& stream, uint64_t sequence);
  /// The next message; nullopt if none waits. It is delivered again if it is not acknowledged.
  Result<std::optional<Delivery>> Pull(const std::string& stream, const std::string& consumer);
  /// The work on it goes on: it is not delivered again so soon.
  Status StillWorking(const Delivery& delivery);
  /// Done: it is never delivered again. Returns when the server has noted it.
  Status Acknowledge(const Delivery& delivery);
  /// Not done: deliver it again after `seconds`.
  Status GiveBack(const Delivery& delivery, double seconds);

 private:
  Result<Json> Ask(const std::string& what, const Json& request);

  Client& client_;
};

}  // namespace atunner::nats
