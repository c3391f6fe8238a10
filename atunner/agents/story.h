// The story of an optimisation on one page, and the lineage of its kernels.
#pragma once

#include <string>

#include "atunner/agents/rounds.h"

namespace atunner::agents {

/// Operator, hardware, each round with its ideas and their outcomes, and the winner's lineage.
std::string StoryOf(const RoundsState& state);

/// The kept kernels as a tree: each with the idea that led to it, its time and its gain.
std::string LineageText(const RoundsState& state);
/// [{"idea", "title", "parent", "ns", "trial", "status", …}, …].
Json LineageJson(const RoundsState& state);

}  // namespace atunner::agents
