// One request to a server, and its answer.
#pragma once

#include <cstdint>
#include <string>

#include "atunner/base/result.h"
#include "atunner/http/message.h"

namespace atunner::http {

/// "http://HOST[:PORT]".
struct Origin {
  std::string host;
  std::string port = "80";
  std::string Text() const { return "http://" + host + ":" + port; }
};

/// kInvalidInput for another scheme, a path or a missing host; the error is about `field`.
Result<Origin> ParseOrigin(const std::string& text, const std::string& field);

struct CallOptions {
  double seconds = 60;                     ///< for everything together
  uint64_t max_bytes = uint64_t{1} << 30;  ///< of the answer's body
  Path to_file;                            ///< where the answer's body goes if not empty
};

/// Sends `request` (method, target, headers, and `body` or `file`) and waits for the answer,
/// whatever its status. kUnavailable if the server cannot be reached or breaks off, kTimeout if it
/// is slow.
Result<Response> Call(const Origin& origin, const Request& request,
                      const CallOptions& options = {});

}  // namespace atunner::http
