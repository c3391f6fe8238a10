// The transport over standard input and output: one JSON a line.
#pragma once

#include <iosfwd>
#include <stop_token>

#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {

/// Serves one client until the input ends; calls that are running are finished. When `stop` is
/// requested they are cancelled, and the function returns with the next line or at the end.
void ServeLines(const Offer& offer, std::istream& in, std::ostream& out, std::stop_token stop);

}  // namespace atunner::mcp
