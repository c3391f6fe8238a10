// Where a nats-server is, who asks it, and which of its queues is meant.
#pragma once

#include <string>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner::nats {

/// "nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT][/NAME]"; with tls:// the connection is encrypted.
struct Url {
  std::string host;
  std::string port = "4222";
  bool tls = false;
  std::string user;
  std::string password;
  std::string token;
  std::string name = "atunner";  ///< of the stream; several servers may share a nats-server
  /// Without credentials, for messages.
  std::string Text() const { return (tls ? "tls://" : "nats://") + host + ":" + port; }
};

/// User names, passwords and tokens are percent-encoded. kInvalidInput at "--queue"; the message
/// does not repeat the text, which may hold a password.
Result<Url> ParseUrl(std::string_view text);

}  // namespace atunner::nats
