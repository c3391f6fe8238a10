// Ctrl-C as a stop token.
#pragma once

#include <stop_token>

namespace atunner::cli {

/// A token on which SIGINT requests a stop. From the first call on, SIGINT no longer ends the
/// process.
std::stop_token InterruptToken();

}  // namespace atunner::cli
