// One request to a server, and its answer: in plain text or over TLS, directly or by the proxy of
// the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/http/message.h"
#include "atunner/http/origin.h"

namespace atunner::http {

struct CallOptions {
  double seconds = 60;                     ///< for everything together
  uint64_t max_bytes = uint64_t{1} << 30;  ///< of the answer's body
  Path to_file;                            ///< where the answer's body goes if not empty
  /// Takes the body of an answer 200 piece by piece as it comes; false ends the request.
  std::function<bool(std::string_view bytes)> sink;
  std::stop_token stop;
  std::string hint;  ///< of an error where nobody answers
  /// Where the names of proxies come from; empty: the environment of this process.
  Environment environment;
};

/// Sends `request` (method, target, headers, and `body` or `file`) and waits for the answer,
/// whatever its status. Certificates are verified against the system's authorities, those in
/// $SSL_CERT_FILE and those of `origin`. kUnavailable if the server cannot be reached, breaks off
/// or shows a certificate that is not trusted or of another host, kTimeout if it is slow,
/// kCancelled when `stop` is requested or `sink` returns false. Messages name the host, never
/// headers or bodies.
Result<Response> Call(const Origin& origin, const Request& request,
                      const CallOptions& options = {});

}  // namespace atunner::http
