// In which order the parameters of a space become the levels of its decision diagram.
#pragma once

#include <vector>

#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// Takes one condition after another, always the one that adds the fewest combinations of values,
/// and of those first one that shares a parameter with what is placed already. As much as possible
/// is then ruled out early, and groups of parameters that share no condition stay apart.
/// `uses` lists the parameters of each condition, in the order in which they are to be placed.
std::vector<size_t> ChooseLevelOrder(const ParameterSpace& space,
                                     const std::vector<std::vector<size_t>>& uses);

}  // namespace atunner
