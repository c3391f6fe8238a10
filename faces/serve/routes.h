// The routes of the API: which request goes where, and what it may bring.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "atunner/http/message.h"
#include "atunner/platform/access.h"
#include "faces/serve/call.h"

namespace atunner::serve {

enum class BodyKind : uint8_t { kNone, kJson, kLargeJson, kUpload, kArtifact };

struct Route {
  std::string_view method;
  std::string_view pattern;  ///< "/api/v1/jobs/{id}"; "{path}" stands for all that follows
  /// The scope that a caller needs; nullopt: none.
  std::optional<platform::Scope> scope;
  BodyKind body = BodyKind::kNone;
  http::Response (*answer)(Call& call);
};

const std::vector<Route>& AllRoutes();

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> segments;
  bool other_method = false;  ///< the path is known, with other methods
};

Match FindRoute(std::string_view method, const http::Url& url);

// The groups of AllRoutes.
std::vector<Route> JobRoutes();
std::vector<Route> FileRoutes();
std::vector<Route> RunRoutes();
std::vector<Route> WorkRoutes();
std::vector<Route> AdminRoutes();
std::vector<Route> MachineRoutes();
std::vector<Route> McpRoutes();
std::vector<Route> KnowledgeRoutes();

}  // namespace atunner::serve
