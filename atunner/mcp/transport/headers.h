// What headers of a request must say about the message in its body.
#pragma once

#include <optional>
#include <string>

#include "atunner/http/message.h"
#include "atunner/mcp/protocol/message.h"

namespace atunner::mcp {

/// True where the message or the header MCP-Protocol-Version belongs to 2026-07-28 or to a revision
/// that is stated in the same way.
bool IsStateless(const http::Request& request, const Message& message);

/// RpcCode::kHeaderMismatch where MCP-Protocol-Version, Mcp-Method or Mcp-Name is missing or
/// contradicts the message (revision 2026-07-28, transports). A name may be written
/// "=?base64?…?=".
std::optional<RpcError> CheckHeaders(const http::Request& request, const Message& message);

}  // namespace atunner::mcp
