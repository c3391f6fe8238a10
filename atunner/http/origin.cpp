#include "atunner/http/origin.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

namespace atunner::http {
namespace {

constexpr const char* kOriginHint = "write http://HOST:PORT or https://HOST:PORT";
constexpr size_t kMostOfAUrl = 200;

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

/// True for a host that one of the comma-separated entries names, or whose end it names.
bool IsExcepted(std::string_view host, std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == "*") return true;
    if (entry.starts_with('.')) entry.remove_prefix(1);
    if (entry.empty() || !host.ends_with(entry)) continue;
    if (host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.') return true;
  }
  return false;
}

std::optional<std::string> FirstOf(const Environment& environment,
                                   std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto value = environment(name);
    if (value && !value->empty()) return value;
  }
  return std::nullopt;
}

}  // namespace

Result<ServiceUrl> ParseServiceUrl(std::string_view text) {
  const std::string where(text.substr(0, kMostOfAUrl));
  const auto is_bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(text, is_bad)) return Invalid("a URL has no blanks", where);
  ServiceUrl url;
  Origin& origin = url.origin;
  origin.tls = text.starts_with("https://");
  if (!origin.tls && !text.starts_with("http://"))
    return Invalid("a service begins with http:// or https://", where);
  text.remove_prefix(origin.tls ? 8 : 7);
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view host = text.substr(0, end);
  text.remove_prefix(end);
  url.target = text.starts_with('/') ? std::string(text) : "/" + std::string(text);
  url.target = url.target.substr(0, url.target.find('#'));
  origin.port = origin.tls ? "443" : "80";
  if (host.find('@') != std::string_view::npos)
    return Invalid("a URL must not hold a user's name or password", "",
                   "keys come from the environment or a file");
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    if (!IsPort(host.substr(colon + 1))) return Invalid("the port is no number", where);
    origin.port = std::string(host.substr(colon + 1));
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return Invalid("a URL needs a host", where);
  origin.host = std::string(host);
  return url;
}

Result<Origin> ParseOrigin(const std::string& text, const std::string& field) {
  const auto url = ParseServiceUrl(text);
  if (!url || url->target != "/" || text.ends_with('#') || text.ends_with('?'))
    return Invalid("'" + text + "' is no server", field, kOriginHint);
  return url->origin;
}

bool IsLoopbackHost(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  // Only an address counts: "127.0.0.1.example.org" is a name, which may lead anywhere.
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == 127;
}

Result<std::optional<Origin>> ProxyFor(const Origin& origin, const Environment& environment) {
  if (IsLoopbackHost(origin.host)) return std::optional<Origin>();
  // A server of the web could set $HTTP_PROXY by a header "Proxy", so only small letters count.
  const auto proxy = origin.tls ? FirstOf(environment,
                                          {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                                : FirstOf(environment, {"http_proxy", "all_proxy", "ALL_PROXY"});
  if (!proxy) return std::optional<Origin>();
  const auto excepted = FirstOf(environment, {"no_proxy", "NO_PROXY"});
  if (excepted && IsExcepted(origin.host, *excepted)) return std::optional<Origin>();
  const std::string text = proxy->find("://") == std::string::npos ? "http://" + *proxy : *proxy;
  const auto parsed = ParseOrigin(text, "https_proxy");
  if (!parsed || parsed->tls)
    return Invalid("the proxy of the environment is no http://HOST:PORT", "https_proxy",
                   "set http_proxy and https_proxy so, or no_proxy for hosts without it");
  return std::optional<Origin>(*parsed);
}

}  // namespace atunner::http
