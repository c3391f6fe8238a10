// One request to a server, and its answer.
#pragma once

#include <cstdint>
#include <string>

#include "atunner/base/result.h"
#include "atunner/http/message.h"

namespace atunner::http {

/// "http://HOST[:PORT]" or "https://HOST[:PORT]".
struct Origin {
  std::string host;
  std::string port = "80";
  bool tls = false;
  Path authorities;  ///< PEM file of certificates to trust beside the system's; "" for none
  std::string Text() const { return (tls ? "https://" : "http://") + host + ":" + port; }
};

/// kInvalidInput for another scheme, a path or a missing host; the error is about `field`.
Result<Origin> ParseOrigin(const std::string& text, const std::string& field);

struct CallOptions {
  double seconds = 60;                     ///< for everything together
  uint64_t max_bytes = uint64_t{1} << 30;  ///< of the answer's body
  Path to_file;                            ///< where the answer's body goes if not empty
};

/// Sends `request` (method, target, headers, and `body` or `file`) and waits for the answer,
/// whatever its status. kUnavailable if the server cannot be reached, breaks off or shows a
/// certificate that is not trusted or of another host, kTimeout if it is slow.
Result<Response> Call(const Origin& origin, const Request& request,
                      const CallOptions& options = {});

}  // namespace atunner::http
