// Ctrl-C, and a service manager's request to end, as a stop token.
#pragma once

#include <stop_token>

namespace atunner::cli {

/// A token on which SIGINT requests a stop. From the first call on, SIGINT no longer ends the
/// process.
std::stop_token InterruptToken();

/// The same for SIGTERM too: for programs that a service manager ends.
std::stop_token TerminationToken();

}  // namespace atunner::cli
