#include "atunner/jobs/evidence/rewrite_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace atunner::jobs {
namespace {

constexpr double kLeastGain = 1.02;  // of a round

}  // namespace

RewriteSource::RewriteSource(const Candidate& own, RenderedKernel kernel, const KernelSpec& spec,
                             Profiler profiler)
    : spec_(spec), profiler_(std::move(profiler)), own_(own.id) {
  kernels_[own_].kernel = std::move(kernel);
}

const RewrittenKernel* RewriteSource::Find(const Digest& id) const {
  const auto found = kernels_.find(id);
  return found == kernels_.end() ? nullptr : &found->second;
}

std::optional<double> RewriteSource::ObjectiveOf(const Digest& id) const {
  const auto found = results_.find(id);
  return found == results_.end() ? std::nullopt : found->second;
}

Digest RewriteSource::Best() const {
  const auto time = [&](const auto& entry) {
    return ObjectiveOf(entry.first).value_or(std::numeric_limits<double>::infinity());
  };
  return std::ranges::min_element(kernels_, {}, time)->first;
}

bool RewriteSource::RoundEnded() const {
  return waiting_.empty() && std::ranges::all_of(kernels_, [&](const auto& entry) {
           return results_.contains(entry.first);
         });
}

std::vector<Candidate> RewriteSource::Ask(size_t n) {
  if (n > 0 && stop_reason_.empty() && RoundEnded()) BeginRound();
  std::vector<Candidate> asked;
  while (!waiting_.empty() && asked.size() < n) {
    asked.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
  }
  return asked;
}

void RewriteSource::Tell(const CandidateResult& result) {
  results_[result.candidate.id] = result.objective;
  for (TriedIdea& tried : ideas_) {
    if (tried.candidate == result.candidate.id) tried.objective = result.objective;
  }
}

void RewriteSource::BeginRound() {
  const Digest best = Best();
  const auto now = ObjectiveOf(best);
  if (!now) {
    stop_reason_ = "the kernel itself was refused";
    return;
  }
  if (base_ && *ObjectiveOf(*base_) < *now * kLeastGain) {
    stop_reason_ = fmt::format("round {} gained less than 2 %", round_);
    return;
  }
  if (++round_ > kMostRounds) {
    stop_reason_ = fmt::format("{} rounds", kMostRounds);
    return;
  }
  base_ = best;
  RewrittenKernel& kernel = kernels_[best];
  auto profile = profiler_(kernel.kernel);
  if (!profile) {
    stop_reason_ = "the best kernel has no profile: " + profile.error().ToString();
    return;
  }
  kernel.profile = *std::move(profile);
  const RenderedKernel from = kernel.kernel;
  for (const Idea& idea : IdeasFor(from, spec_, *kernel.profile)) {
    if (idea.proposals.empty()) ideas_.push_back({round_, idea, "", {}, std::nullopt, {}});
    for (const rewrites::Proposal& proposal : idea.proposals) Propose(idea, proposal);
  }
  if (waiting_.empty()) stop_reason_ = fmt::format("round {} had no new idea", round_);
}

void RewriteSource::Propose(const Idea& idea, const rewrites::Proposal& proposal) {
  RenderedKernel changed = With(kernels_[*base_].kernel, proposal);
  Candidate candidate = MakeSourceCandidate(changed,
                                            {"rewrite:" + idea.rewrite, idea.reason, base_});
  TriedIdea tried{round_,        idea,         proposal.detail,
                  proposal.grid, candidate.id, ObjectiveOf(candidate.id)};
  tried.idea.proposals.clear();
  if (kernels_.contains(candidate.id)) return;  // the same text by other ideas
  kernels_[candidate.id] = {std::move(changed), base_, ideas_.size(), {}};
  ideas_.push_back(std::move(tried));
  // An earlier session of the run may have judged it.
  if (!results_.contains(candidate.id)) waiting_.push_back(std::move(candidate));
}

}  // namespace atunner::jobs
