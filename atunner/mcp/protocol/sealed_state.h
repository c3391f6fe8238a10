// Text that a client carries from one call to the next: it can be read, but not changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atunner::mcp {

/// `text` with a signature (HMAC-SHA256, RFC 2104) that holds for this `secret` and `purpose`
/// alone.
std::string Seal(std::string_view secret, std::string_view purpose, std::string_view text);

/// The text of a seal; nullopt if it was changed, or made for another purpose or by another server.
std::optional<std::string> Unseal(std::string_view secret, std::string_view purpose,
                                  std::string_view sealed);

}  // namespace atunner::mcp
