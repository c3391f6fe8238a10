// Compressed answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atunner::serve {

/// `text` in the format gzip (RFC 1952), at the fastest level.
std::string Packed(std::string_view text);

/// What was packed; nullopt if its bytes are damaged.
std::optional<std::string> Unpacked(std::string_view gzip);

}  // namespace atunner::serve
