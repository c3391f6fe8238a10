// The server: queue, tokens, API, dashboard and the workers of this machine in one process tree.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "atunner/base/result.h"
#include "atunner/jobs/requests/services.h"
#include "faces/serve/serve_context.h"

namespace atunner::serve {

/// "127.0.0.1:8080", "[::1]:8080" or "0.0.0.0:0". kInvalidInput at "--listen".
Status ParseListen(const std::string& text, ServeOptions& options);

/// The folder beside the store: "atunner.db.serve".
Path DataFolder(const Path& store);

/// Serves until `stop`, then lets workers and answers end. `ready` is told the server's address,
/// "http://127.0.0.1:8080". kInvalidInput for an address beyond this machine without any token.
Status Serve(ServeOptions options, jobs::Services& services,
             const std::function<void(const std::string&)>& ready, const std::stop_token& stop);

}  // namespace atunner::serve
