// Where requests go: servers by their origin, services by a URL, and the proxy on the way there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

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

/// "https://host:port/path?query" in its parts.
struct ServiceUrl {
  Origin origin;
  std::string target;  ///< "/path?query"
};

/// kInvalidInput for another scheme, a missing host, user names, or characters that a URL cannot
/// have.
Result<ServiceUrl> ParseServiceUrl(std::string_view text);

/// "localhost", 127.0.0.0/8 and ::1.
bool IsLoopbackHost(std::string_view host);

/// The value of a variable of the environment.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The proxy that the environment names for this origin: $https_proxy or $http_proxy, in small or,
/// for https, capital letters, except for hosts of $no_proxy (a list of names and ends of names, or
/// "*"). nullopt for none; there is never one for this machine. kInvalidInput for a proxy that is
/// no http:// URL.
Result<std::optional<Origin>> ProxyFor(const Origin& origin, const Environment& environment);

}  // namespace atunner::http
