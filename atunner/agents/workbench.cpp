#include "atunner/agents/workbench.h"

#include <algorithm>

namespace atunner::agents {

Result<std::vector<Trial>> Workbench::Judge(const std::vector<Candidate>& candidates) {
  ATUNNER_RETURN_IF_ERROR(tuning_.Try(candidates));
  std::vector<Trial> trials;
  for (const Candidate& candidate : candidates) {
    const auto found = std::ranges::find_if(
        tuning_.trials(), [&](const Trial& trial) { return trial.candidate.id == candidate.id; });
    if (found != tuning_.trials().end()) trials.push_back(*found);
  }
  return trials;
}

}  // namespace atunner::agents
