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

/// The header with what nvcc gives to every source without an #include: constants (INFINITY, M_PI,
/// INT_MAX), types (uint32_t) and std's functions.
inline constexpr const char* kImplicitHeader = "atunner/implicit_cuda_runtime.h";
/// True if NVRTC's log misses a name of that header.
bool MissesImplicitName(std::string_view log);

/// The header in angle brackets that NVRTC's log reports as missing; nullopt if there is none. A
/// header in quotation marks is the user's own, and its absence stays an error.
std::optional<std::string> AbsentHeader(std::string_view log);

}  // namespace atunner
