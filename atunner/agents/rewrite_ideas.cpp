#include "atunner/agents/rewrite_ideas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/agents/propose.h"
#include "atunner/rewrites/source/catalogue.h"

namespace atunner::agents {
namespace {

constexpr double kMostScore = 1.5;

std::string ProposerOf(const jobs::Idea& idea) {
  return std::string(kRewriteProposer) + idea.rewrite;
}

bool WasTried(const std::vector<Idea>& earlier, const std::string& proposer,
              const std::string& parent) {
  return std::ranges::any_of(earlier, [&](const Idea& idea) {
    return idea.proposer == proposer && idea.parent == parent;
  });
}

}  // namespace

Result<RenderedKernel> KernelOf(const ScheduleTemplate& schedule, const Version& version) {
  const Candidate& candidate = version.trial.candidate;
  if (const RenderedKernel* kernel = candidate.kernel()) return *kernel;
  return schedule.Render(*candidate.configuration());
}

std::vector<Idea> RewriteIdeas(const std::vector<jobs::Idea>& found, const Version& parent,
                               const std::vector<Idea>& earlier, int round) {
  std::vector<Idea> ideas;
  for (const jobs::Idea& one : found) {
    const std::string proposer = ProposerOf(one);
    if (one.proposals.empty() || WasTried(earlier, proposer, parent.idea)) continue;
    Idea idea;
    idea.round = round;
    idea.proposer = proposer;
    idea.title = fmt::format("{}: {}", one.rewrite, one.reason);
    idea.why = fmt::format("against {}", evidence::Name(one.removes));
    idea.effect = one.expected_gain
                      ? fmt::format("up to {:.3g}x by the time model", *one.expected_gain)
                      : "not known to the time model";
    idea.parent = parent.idea;
    idea.score = LearnedWeight(proposer, 1, earlier) *
                 std::min(kMostScore, one.expected_gain.value_or(1));
    ideas.push_back(std::move(idea));
  }
  std::ranges::stable_sort(ideas, {}, [](const Idea& idea) { return -idea.score; });
  return ideas;
}

Result<std::vector<Candidate>> ImplementRewrite(const ScheduleTemplate& schedule, const Idea& idea,
                                                const Version& parent, size_t most,
                                                const std::set<std::string>& known) {
  const std::string name = idea.proposer.substr(kRewriteProposer.size());
  const rewrites::Rewrite* rewrite = rewrites::FindRewrite(name);
  if (rewrite == nullptr) return Fail(ErrorCode::kUnsupported, "no rewrite is called " + name);
  ATUNNER_TRY(const RenderedKernel kernel, KernelOf(schedule, parent));
  ATUNNER_TRY(const auto subject, rewrites::Subject::Read(kernel, schedule.spec()));
  ATUNNER_TRY(const auto proposals, rewrite->apply(*subject));
  std::vector<Candidate> candidates;
  for (const rewrites::Proposal& proposal : proposals) {
    const std::string detail = proposal.detail.empty() ? "" : ", " + proposal.detail;
    Candidate candidate = MakeSourceCandidate(
        With(kernel, proposal),
        {idea.proposer, idea.id + ": " + idea.title + detail, parent.trial.candidate.id});
    if (candidates.size() < most && !known.contains(candidate.id.ToHex()))
      candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace atunner::agents
