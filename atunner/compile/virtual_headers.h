// Replacements for headers that .cu files include and NVRTC does not have or cannot read. Device
// code needs few of their declarations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace atunner {

/// Text by header name, as it stands between the brackets of an #include. Host-only headers are
/// empty.
using VirtualHeaders = std::map<std::string, std::string_view, std::less<>>;
const VirtualHeaders& KnownHeaders();

/// The header in angle brackets that NVRTC's log reports as missing; nullopt if there is none. A
/// header in quotation marks is the user's own, and its absence stays an error.
std::optional<std::string> AbsentHeader(std::string_view log);

}  // namespace atunner
