// The text protocol of NATS (https://docs.nats.io/reference/reference-protocols/nats-protocol):
// what a server says as values, and what a client says as text. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::nats {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Message {
  std::string subject;
  std::string reply;  ///< where answers go; "" for none
  int status = 0;     ///< of the header's first line, for example 503 "no responders"; 0 for none
  std::string description;  ///< of the status
  Headers headers;
  std::string payload;
};

/// One operation of a server.
struct Operation {
  enum class Kind : uint8_t { kInfo, kMessage, kPing, kPong, kOk, kError };
  Kind kind = Kind::kOk;
  uint64_t subscription = 0;  ///< of a message
  Message message;
  std::string text;  ///< of kInfo its JSON, of kError the reason without quotes
};

/// Takes a server's bytes in pieces of any size and gives its operations.
class Parser {
 public:
  /// A payload with headers above `most_bytes` is an error.
  explicit Parser(size_t most_bytes = size_t{8} << 20) : most_bytes_(most_bytes) {}

  void Feed(std::string_view bytes) { bytes_ += bytes; }
  /// The next complete operation; nullopt while more bytes are needed. kUnavailable for anything
  /// but the protocol; the connection cannot be used after that.
  Result<std::optional<Operation>> Next();

 private:
  Result<std::optional<Operation>> Line(std::string_view line);
  /// Reads the line of MSG or HMSG; its payload follows.
  Status Head(std::string_view arguments, bool has_headers);
  Result<std::optional<Operation>> Payload();
  void Consume(size_t count);

  size_t most_bytes_;
  std::string bytes_;
  size_t begin_ = 0;                  ///< of the bytes that are not consumed
  std::optional<Operation> pending_;  ///< a message whose payload is not complete
  size_t header_bytes_ = 0;
  size_t total_bytes_ = 0;
};

/// True for a subject that can be published to: tokens without blanks and wildcards, between dots.
bool IsSubject(std::string_view subject);

/// PUB, or HPUB with headers. `reply` may be "". Names and values of headers hold no line ends.
std::string PublishText(std::string_view subject, std::string_view reply, const Headers& headers,
                        std::string_view payload);
std::string SubscribeText(std::string_view subject, uint64_t subscription);
/// `after`: the subscription ends after so many messages; 0: now.
std::string UnsubscribeText(uint64_t subscription, int after);

}  // namespace atunner::nats
