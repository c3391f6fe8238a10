// What the public conformance suite of the protocol (npm @modelcontextprotocol/conformance) asks a
// server to offer beside its own: tools, prompts and resources with fixed answers.
#pragma once

#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {

/// Those that the scenarios of 2025-11-25 and of 2026-07-28 name. It outlives the program.
const Offer& ConformanceFixtures();

}  // namespace atunner::mcp
