// Proposes rewritten kernels to a tuning session, round by round:
//
//   the best kernel so far  →  its profile  →  ideas against its bottleneck  →  candidates
//         ▲                                                                        │
//         └──────────── the fastest of them that the judge found right ◄───────────┘
//
// It ends when a round gains less than 2 %, or after kMostRounds. Where the kernel was recognised
// as an operator, kernels of our families for it are proposed in the first round; if one of them
// becomes the best, its neighbours are the ideas of the next.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atunner/jobs/evidence/explain.h"
#include "atunner/jobs/evidence/recognised_kernels.h"
#include "atunner/search/candidate_source.h"

namespace atunner::jobs {

/// One idea of one round, in one of its forms.
struct TriedIdea {
  int round = 0;
  Idea idea;           ///< without its proposals
  std::string detail;  ///< of the form
  rewrites::GridChange grid;
  std::optional<Digest> candidate;  ///< nullopt: it does not apply
  std::optional<double> objective;  ///< nullopt: refused by compiler or judge, or not judged
};

/// A kernel of the tree of rewrites.
struct RewrittenKernel {
  RenderedKernel kernel;
  std::optional<Digest> parent;          ///< nullopt: the user's own
  size_t idea = 0;                       ///< index of the TriedIdea that made it
  std::optional<LaunchProfile> profile;  ///< of those from which a round began
  /// The configuration of the recognised operator's schedule; nullopt: the source is the user's
  std::optional<uint64_t> offered = {};
};

class RewriteSource : public CandidateSource {
 public:
  static constexpr int kMostRounds = 4;
  using Profiler = std::function<Result<LaunchProfile>(const RenderedKernel&)>;

  /// What TriedIdea calls the kernel of a recognised operator.
  static constexpr const char* kOperatorKernel = "operator-kernel";

  /// `own`: the candidate that is the user's kernel, and its text. `recognised` may be null.
  RewriteSource(const Candidate& own, RenderedKernel kernel, const KernelSpec& spec,
                Profiler profiler, const RecognisedKernels* recognised);

  std::vector<Candidate> Ask(size_t n) override;
  void Tell(const CandidateResult& result) override;

  const std::vector<TriedIdea>& ideas() const { return ideas_; }
  /// nullptr for a candidate that is not of this source.
  const RewrittenKernel* Find(const Digest& id) const;
  /// Why the rounds ended, or why a kernel has no profile.
  const std::string& stop_reason() const { return stop_reason_; }

 private:
  bool RoundEnded() const;
  void BeginRound();
  /// The ideas against what the profile of the best kernel shows; false if it has none.
  bool ProposeRewrites();
  void Propose(const Idea& idea, const rewrites::Proposal& proposal);
  void ProposeOffers(const std::vector<OfferedKernel>& offers);
  void Add(const Idea& idea, const std::string& detail, const rewrites::GridChange& grid,
           Candidate candidate, RewrittenKernel kernel);
  std::optional<double> ObjectiveOf(const Digest& id) const;
  /// The fastest kernel that is known to be right.
  Digest Best() const;

  const KernelSpec& spec_;
  Profiler profiler_;
  const RecognisedKernels* recognised_;
  Digest own_;
  std::map<Digest, RewrittenKernel> kernels_;
  std::map<Digest, std::optional<double>> results_;  ///< of all candidates of the session
  std::vector<TriedIdea> ideas_;
  std::vector<Candidate> waiting_;  ///< to be asked for
  std::optional<Digest> base_;      ///< of the round
  int round_ = 0;
  std::string stop_reason_;
};

}  // namespace atunner::jobs
