// Prompts: what a person asks most, as texts that lead an agent through the tools.
#pragma once

#include <vector>

#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {

/// optimise, port, fuse
std::vector<Prompt> MakePrompts();

/// What a client should know before its first call.
const char* Instructions();

}  // namespace atunner::mcp
