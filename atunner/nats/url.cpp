#include "atunner/nats/url.h"

#include <algorithm>
#include <cctype>

#include "atunner/http/url.h"

namespace atunner::nats {
namespace {

constexpr size_t kLongestName = 32;

std::unexpected<Error> BadUrl(const char* what) {
  return Invalid(what, "--queue", "write nats://[USER:PASSWORD@]HOST[:PORT][/NAME], or tls://…");
}

Result<std::string> Decoded(std::string_view text) {
  auto decoded = http::PercentDecode(text, false);
  if (!decoded) return BadUrl("the credentials have a broken % escape");
  return *std::move(decoded);
}

Status ParseCredentials(std::string_view text, Url& url) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    ATUNNER_TRY(url.token, Decoded(text));
    return {};
  }
  ATUNNER_TRY(url.user, Decoded(text.substr(0, colon)));
  ATUNNER_TRY(url.password, Decoded(text.substr(colon + 1)));
  return {};
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

Status ParseHost(std::string_view host, Url& url) {
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    if (!IsNumber(host.substr(colon + 1))) return BadUrl("the port is no number");
    url.port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return BadUrl("the host is missing");
  url.host = host;
  return {};
}

/// Names become parts of subjects and of file names.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(
             name, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
}

}  // namespace

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  url.tls = text.starts_with("tls://");
  if (!url.tls && !text.starts_with("nats://"))
    return BadUrl("the queue's address begins with neither nats:// nor tls://");
  text.remove_prefix(text.find("//") + 2);
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (std::ranges::any_of(text, is_bad)) return BadUrl("an address has no blanks");
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos && slash + 1 < text.size()) {
    url.name = text.substr(slash + 1);
    if (!IsName(url.name)) return BadUrl("a name has at most 32 letters, digits, '-' and '_'");
  }
  text = text.substr(0, slash);
  const size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    ATUNNER_RETURN_IF_ERROR(ParseCredentials(text.substr(0, at), url));
    text.remove_prefix(at + 1);
  }
  ATUNNER_RETURN_IF_ERROR(ParseHost(text, url));
  return url;
}

}  // namespace atunner::nats
