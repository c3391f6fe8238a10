// The Model Context Protocol over HTTP: room mcp knows it, this file knows who may use it.
#include "atunner/mcp/transport/endpoint.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

http::Response CarryMessage(Call& call) {
  return call.context.mcp->Answer(call.request, call.caller.token);
}

}  // namespace

/// Tools compile and run what a client sends, so all of them need the scope of those who submit.
std::vector<Route> McpRoutes() {
  using platform::kSubmit;
  return {{"POST", "/mcp", kSubmit, BodyKind::kLargeJson, CarryMessage},
          {"DELETE", "/mcp", kSubmit, BodyKind::kNone, CarryMessage},
          {"GET", "/mcp", kSubmit, BodyKind::kNone, CarryMessage}};
}

}  // namespace atunner::serve
