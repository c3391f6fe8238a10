// Headers that real .cu files include and NVRTC does not have, or cannot read. Device code needs
// little of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace atunner {

/// Name, as it stands between the brackets of an #include, and text. Those of the host alone are
/// empty.
using VirtualHeaders = std::map<std::string, std::string_view, std::less<>>;
const VirtualHeaders& KnownHeaders();

/// The header in angle brackets that NVRTC's log says is nowhere. One between quotation marks is
/// the user's own: that it is missing must be said.
std::optional<std::string> AbsentHeader(std::string_view log);

}  // namespace atunner
