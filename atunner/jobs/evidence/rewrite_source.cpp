#include "atunner/jobs/evidence/rewrite_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "atunner/jobs/evidence/recognised_kernels.h"

namespace atunner::jobs {
namespace {

constexpr double kLeastGain = 1.02;  // of a round
constexpr size_t kMostThreads = 8;   // that compile and predict side by side

/// Calls f(0) … f(count - 1) on several threads.
void InParallel(size_t count, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) f(i);
  };
  const size_t threads = std::min<size_t>(
      {count, kMostThreads, std::max(1u, std::thread::hardware_concurrency())});
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

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

std::optional<Digest> RewriteSource::Best(bool offered) const {
  std::optional<Digest> best;
  for (const auto& [id, kernel] : kernels_) {
    if (kernel.offered.has_value() != offered || !ObjectiveOf(id)) continue;
    if (!best || *ObjectiveOf(id) < *ObjectiveOf(*best)) best = id;
  }
  return best;
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
  const auto rewritten = Best(false), offered = Best(true);
  if (!rewritten) {
    stop_reason_ = "the kernel itself was refused";
    return;
  }
  const auto gains = [this](std::optional<double>& before, const std::optional<Digest>& best) {
    const std::optional<double> now = best ? ObjectiveOf(*best) : std::nullopt;
    const bool gained = now && (!before || *before >= *now * kLeastGain);
    before = now;
    return gained;
  };
  const bool rewriting_gains = gains(rewritten_before_, rewritten),
             operator_gains = gains(offered_before_, offered);
  if (!rewriting_gains && !operator_gains) {
    stop_reason_ = fmt::format("round {} gained less than 2 %", round_);
    return;
  }
  if (++round_ > kMostRounds) {
    stop_reason_ = fmt::format("{} rounds", kMostRounds);
    return;
  }
  if (rewriting_gains && !ProposeRewrites(*rewritten)) return;
  if (recognised_ != nullptr && (round_ == 1 || operator_gains)) ProposeOffers(offered);
  PredictWaiting();
  if (waiting_.empty()) stop_reason_ = fmt::format("round {} had no new idea", round_);
}

bool RewriteSource::ProposeRewrites(const Digest& from) {
  RewrittenKernel& kernel = kernels_[from];
  auto profile = profiler_(kernel.kernel);
  if (!profile) {
    stop_reason_ = "the best kernel has no profile: " + profile.error().ToString();
    return false;
  }
  kernel.profile = *std::move(profile);
  kernel.predicted_ns = kernel.profile->estimate.time_ns;
  for (const Idea& idea : IdeasFor(kernel.kernel, spec_, *kernel.profile)) {
    if (idea.proposals.empty()) ideas_.push_back({round_, idea, "", {}, std::nullopt, {}});
    for (const rewrites::Proposal& proposal : idea.proposals) Propose(idea, proposal, from);
  }
  return true;
}

void RewriteSource::Propose(const Idea& idea, const rewrites::Proposal& proposal,
                            const Digest& from) {
  RenderedKernel changed = With(kernels_[from].kernel, proposal);
  Candidate candidate = MakeSourceCandidate(changed,
                                            {"rewrite:" + idea.rewrite, idea.reason, from});
  Add(idea, proposal.detail, proposal.grid, std::move(candidate), {std::move(changed), from});
}

/// What they are against is what the user's kernel shows. They come before the rewrites, of which
/// there may be more than the budget allows.
void RewriteSource::ProposeOffers(const std::optional<Digest>& from) {
  const RewrittenKernel& own = kernels_[own_];
  Idea idea{kOperatorKernel, "the kernel computes the " + recognised_->Describe()};
  if (own.profile) idea.removes = own.profile->findings.front().bottleneck;
  const Digest parent = from.value_or(own_);
  std::vector<Candidate> rewrites = std::exchange(waiting_, {});
  for (const OfferedKernel& offer :
       from ? recognised_->Near(*kernels_[parent].offered) : recognised_->First()) {
    Candidate candidate = MakeSourceCandidate(
        offer.kernel, {std::string("recognised:") + kOperatorKernel, idea.reason, parent});
    Add(idea, offer.configuration, {}, std::move(candidate),
        {offer.kernel, parent, 0, {}, {}, offer.index});
  }
  waiting_.insert(waiting_.end(), std::make_move_iterator(rewrites.begin()),
                  std::make_move_iterator(rewrites.end()));
}

void RewriteSource::PredictWaiting() {
  std::vector<RewrittenKernel*> kernels;
  for (const Candidate& candidate : waiting_) kernels.push_back(&kernels_.at(candidate.id));
  InParallel(kernels.size(), [&](size_t i) {
    if (const auto profile = profiler_(kernels[i]->kernel))
      kernels[i]->predicted_ns = profile->estimate.time_ns;
  });
  for (const RewrittenKernel* kernel : kernels) {
    const std::optional<double> before = kernels_.at(*kernel->parent).predicted_ns;
    if (before && kernel->predicted_ns)
      ideas_[kernel->idea].idea.expected_gain = *before / *kernel->predicted_ns;
  }
  std::ranges::stable_sort(waiting_, {}, [&](const Candidate& candidate) {
    return kernels_.at(candidate.id).predicted_ns.value_or(std::numeric_limits<double>::max());
  });
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
