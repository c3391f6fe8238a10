// A request to a service of others, over HTTP or HTTPS, with deadlines. Certificates are verified
// against the system's authorities, or those in $SSL_CERT_FILE.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::http {

/// "https://host:port/path?query" in its parts.
struct ServiceUrl {
  bool tls = false;
  std::string host;
  std::string port;    ///< "443", "80" or as stated
  std::string target;  ///< "/path?query"
};

/// kInvalidInput for another scheme, a missing host, user names, or characters that a URL cannot
/// have.
Result<ServiceUrl> ParseServiceUrl(std::string_view text);

struct ClientRequest {
  std::string method = "POST";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  double timeout_seconds = 120;          ///< for each of: connecting, sending, receiving
  size_t most_bytes = size_t{16} << 20;  ///< of the answer
};

struct ClientResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;

  /// "" if there is no such header; `name` in lower case.
  std::string Header(std::string_view name) const;
};

/// kUnavailable when the service cannot be reached, breaks off or its certificate is wrong,
/// kTimeout, kCancelled. An answer with an error's status is an answer. Messages name the host,
/// never headers or bodies.
Result<ClientResponse> Send(const ClientRequest& request, const std::stop_token& stop = {});

}  // namespace atunner::http
