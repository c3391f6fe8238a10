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
                             Profiler profiler, const RecognisedKernels* recognised)
    : spec_(spec), profiler_(std::move(profiler)), recognised_(recognised), own_(own.id) {
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
  if (kernels_[best].offered)
    ProposeOffers(recognised_->Near(*kernels_[best].offered));
  else if (!ProposeRewrites())
    return;
  if (waiting_.empty()) stop_reason_ = fmt::format("round {} had no new idea", round_);
}

bool RewriteSource::ProposeRewrites() {
  RewrittenKernel& kernel = kernels_[*base_];
  auto profile = profiler_(kernel.kernel);
  if (!profile) {
    stop_reason_ = "the best kernel has no profile: " + profile.error().ToString();
    return false;
  }
  kernel.profile = *std::move(profile);
  const RenderedKernel from = kernel.kernel;
  const std::vector<Idea> ideas = IdeasFor(from, spec_, *kernel.profile);
  if (round_ == 1 && recognised_ != nullptr) ProposeOffers(recognised_->First());
  for (const Idea& idea : ideas) {
    if (idea.proposals.empty()) ideas_.push_back({round_, idea, "", {}, std::nullopt, {}});
    for (const rewrites::Proposal& proposal : idea.proposals) Propose(idea, proposal);
  }
  return true;
}

void RewriteSource::Propose(const Idea& idea, const rewrites::Proposal& proposal) {
  RenderedKernel changed = With(kernels_[*base_].kernel, proposal);
  Candidate candidate = MakeSourceCandidate(changed,
                                            {"rewrite:" + idea.rewrite, idea.reason, base_});
  Add(idea, proposal.detail, proposal.grid, std::move(candidate), {std::move(changed), base_});
}

/// What they are against is what the user's kernel shows.
void RewriteSource::ProposeOffers(const std::vector<OfferedKernel>& offers) {
  const RewrittenKernel& own = kernels_[own_];
  Idea idea{kOperatorKernel, "the kernel is a " + recognised_->Describe()};
  if (own.profile) idea.removes = own.profile->findings.front().bottleneck;
  for (const OfferedKernel& offer : offers) {
    Candidate candidate = MakeSourceCandidate(
        offer.kernel, {std::string("recognised:") + kOperatorKernel, idea.reason, base_});
    Add(idea, offer.configuration, {}, std::move(candidate),
        {offer.kernel, base_, 0, {}, offer.index});
  }
}

void RewriteSource::Add(const Idea& idea, const std::string& detail,
                        const rewrites::GridChange& grid, Candidate candidate,
                        RewrittenKernel kernel) {
  if (kernels_.contains(candidate.id)) return;  // the same text by other ideas
  TriedIdea tried{round_, idea, detail, grid, candidate.id, ObjectiveOf(candidate.id)};
  tried.idea.proposals.clear();
  kernel.idea = ideas_.size();
  kernels_[candidate.id] = std::move(kernel);
  ideas_.push_back(std::move(tried));
  // An earlier session of the run may have judged it.
  if (!results_.contains(candidate.id)) waiting_.push_back(std::move(candidate));
}

}  // namespace atunner::jobs
