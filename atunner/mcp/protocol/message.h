// JSON-RPC 2.0 messages, as the Model Context Protocol uses them: one JSON object each.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "atunner/model/json/json.h"

namespace atunner::mcp {

/// Codes of JSON-RPC and of the protocol (revision 2026-07-28, schema.ts).
enum class RpcCode : int {
  kParse = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternal = -32603,
  kResourceNotFound = -32002,  ///< in 2025-11-25; 2026-07-28 has kInvalidParams
  kHeaderMismatch = -32020,    ///< headers of HTTP contradict the message
  kMissingCapability = -32021,
  kUnsupportedVersion = -32022,
};

struct RpcError {
  RpcCode code = RpcCode::kInternal;
  std::string message;
  Json data = nullptr;
  Json id = nullptr;  ///< of the request, where it could be read
};

/// A request, a notification (without an id) or the answer to a question of the server.
struct Message {
  std::optional<Json> id;  ///< a string or an integer
  std::string method;
  Json params = Json::object();
  bool answer = false;
  Json result;  ///< of an answer; null for an error
};

/// The largest message that is read, bytes.
inline constexpr size_t kLargestMessage = size_t{8} << 20;

/// Reads one message. RpcCode::kParse for text that is no JSON, kInvalidRequest for JSON that is no
/// message (batches are none).
std::expected<Message, RpcError> ParseMessage(std::string_view text);

/// The texts of an answer, of an error, of a notification and of a question, each one line.
std::string ResultText(const Json& id, const Json& result);
std::string ErrorText(const RpcError& error);
std::string NotificationText(std::string_view method, const Json& params);
std::string QuestionText(const std::string& id, std::string_view method, const Json& params);

/// A member of an object; null where there is none.
Json Member(const Json& object, std::string_view name);
/// The same for a text; "" where there is none.
std::string TextMember(const Json& object, std::string_view name);

}  // namespace atunner::mcp
