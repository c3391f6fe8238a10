#include "atunner/mcp/transport/headers.h"

#include <openssl/evp.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "atunner/mcp/protocol/session.h"

namespace atunner::mcp {
namespace {

constexpr const char* kVersion = "MCP-Protocol-Version";

std::string Trimmed(std::string text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// nullopt for bytes that are no Base64.
std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::vector<unsigned char> bytes(text.size() / 4 * 3 + 1);
  const int size = EVP_DecodeBlock(bytes.data(),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  return std::string(bytes.begin(), bytes.begin() + size - static_cast<int>(padding));
}

std::string Decoded(std::string text) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd) ||
      text.size() < kBegin.size() + kEnd.size())
    return text;
  const std::string_view inner = std::string_view(text).substr(
      kBegin.size(), text.size() - kBegin.size() - kEnd.size());
  return FromBase64(inner).value_or("");
}

/// What Mcp-Name must say; nullopt where the method has no name.
std::optional<std::string> NameOf(const Message& message) {
  if (message.method == "tools/call" || message.method == "prompts/get")
    return TextMember(message.params, "name");
  if (message.method == "resources/read") return TextMember(message.params, "uri");
  return std::nullopt;
}

RpcError Mismatch(const std::string& header, const std::string& wanted) {
  return {RpcCode::kHeaderMismatch, "the header " + header + " must be '" + wanted + "'", nullptr,
          nullptr};
}

}  // namespace

bool IsStateless(const http::Request& request, const Message& message) {
  if (!Member(Member(message.params, "_meta"), kVersionKey).is_null()) return true;
  return Trimmed(request.headers.Get(kVersion)) == kStateless;
}

std::optional<RpcError> CheckHeaders(const http::Request& request, const Message& message) {
  const std::string version = TextMember(Member(message.params, "_meta"), kVersionKey);
  if (!version.empty() && Trimmed(request.headers.Get(kVersion)) != version)
    return Mismatch(kVersion, version);
  // A request whose `_meta` is incomplete is refused for that.
  if (version.empty()) return std::nullopt;
  if (Trimmed(request.headers.Get("Mcp-Method")) != message.method)
    return Mismatch("Mcp-Method", message.method);
  const std::optional<std::string> name = NameOf(message);
  if (name && Decoded(Trimmed(request.headers.Get("Mcp-Name"))) != *name)
    return Mismatch("Mcp-Name", *name);
  return std::nullopt;
}

}  // namespace atunner::mcp
