// Ideas that change the text of a user's kernel: rewrites against the bottleneck that its counters
// show.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "atunner/agents/idea.h"
#include "atunner/jobs/evidence/explain.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::agents {

inline constexpr std::string_view kRewriteProposer = "rewrite:";

/// The kernel of a version: a configuration's as it is rendered, else the candidate's own.
Result<RenderedKernel> KernelOf(const ScheduleTemplate& schedule, const Version& version);

/// Ideas for `parent`, the most promising first, without those that were tried from it before. A
/// rewrite's score is its expected gain, at most 1.5, times what its earlier outcomes teach; it is
/// above that of most rules, which change parameters only.
std::vector<Idea> RewriteIdeas(const std::vector<jobs::Idea>& found, const Version& parent,
                               const std::vector<Idea>& earlier, int round);

/// The kernels of such an idea, at most `most`, without those whose ids are `known`. kUnsupported
/// where the rewrite does not apply.
Result<std::vector<Candidate>> ImplementRewrite(const ScheduleTemplate& schedule, const Idea& idea,
                                                const Version& parent, size_t most,
                                                const std::set<std::string>& known);

}  // namespace atunner::agents
