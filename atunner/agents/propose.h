// Ideas of a round without a language model: rules that match the bottleneck and the parameters of
// the space, and combinations of ideas that were kept.
#pragma once

#include <string>
#include <vector>

#include "atunner/agents/analysis.h"
#include "atunner/agents/idea.h"
#include "atunner/model/space/parameter_space.h"

namespace atunner::agents {

/// What ideas are made of.
struct IdeaContext {
  const ParameterSpace& space;
  /// The kernels to change, best first; configurations only are used.
  std::vector<Version> parents;
  PerformanceFacts performance;  ///< of the first parent
  std::vector<Idea> earlier;     ///< all ideas so far, with outcomes
  int round = 1;
  size_t most = 8;
};

/// The best-ranked ideas that were not tried from the same parent before. A rule counts more when
/// it is against the bottleneck, and gains or loses weight by its earlier outcomes.
std::vector<Idea> ProposeIdeas(const IdeaContext& context);

/// The weight of a rule after the outcomes of earlier ideas: times 1.3 for each that was kept and
/// times 0.7 for each other, within 0.05 and 1.5.
double LearnedWeight(const std::string& proposer, double weight, const std::vector<Idea>& earlier);

}  // namespace atunner::agents
