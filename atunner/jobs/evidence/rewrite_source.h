// Proposes rewritten kernels to a tuning session, round by round:
//
//   the best kernel so far  →  its profile  →  ideas against its bottleneck  →  candidates
//         ▲                                                                        │
//         └──────────── the fastest of them that the judge found right ◄───────────┘
//
// The candidates of a round are compiled and predicted first: the time model of the rewritten
// kernel itself gives its expected gain, and the most promising is judged first.
//
// It ends when a round gains less than 2 %, or after kMostRounds. Where the kernel was recognised
// as an operator, kernels of our families for it are proposed in the first round, too, and in the
// next ones the neighbours of the fastest of them. The user's source goes on being rewritten
// beside, so that there is a change of the file, whichever is faster.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atunner/jobs/evidence/explain.h"
#include "atunner/search/candidate_source.h"

namespace atunner::jobs {

struct OfferedKernel;
class RecognisedKernels;

/// One idea of one round, in one of its forms.
struct TriedIdea {
  int round = 0;
  /// Without its proposals. The expected gain is that of this form, by the time model of its text;
  /// where that is unknown, the gain of removing the bottleneck alone.
  Idea idea;
  std::string detail;  ///< of the form
  rewrites::GridChange grid;
  std::optional<Digest> candidate;  ///< nullopt: it does not apply
  std::optional<double> objective;  ///< nullopt: refused by compiler or judge, or not judged
};

/// A kernel of the tree of rewrites.
struct RewrittenKernel {
  RenderedKernel kernel;
  std::optional<Digest> parent;             ///< nullopt: the user's own
  size_t idea = 0;                          ///< index of the TriedIdea that made it
  std::optional<LaunchProfile> profile;     ///< of those from which a round began
  std::optional<double> predicted_ns = {};  ///< nullopt: it does not compile, or not complete
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
  /// The ideas against what the kernel's profile shows; false if it has none.
  bool ProposeRewrites(const Digest& from);
  void Propose(const Idea& idea, const rewrites::Proposal& proposal, const Digest& from);
  /// The kernels of the operator; those near `from`, if there is one.
  void ProposeOffers(const std::optional<Digest>& from);
  /// Predicts the kernels that wait, in parallel, and puts the fastest first.
  void PredictWaiting();
  void Add(const Idea& idea, const std::string& detail, const rewrites::GridChange& grid,
           Candidate candidate, RewrittenKernel kernel);
  std::optional<double> ObjectiveOf(const Digest& id) const;
  /// The fastest kernel that is known to be right: of the user's source, or of the operator.
  std::optional<Digest> Best(bool offered) const;

  const KernelSpec& spec_;
  Profiler profiler_;
  const RecognisedKernels* recognised_;
  Digest own_;
  std::map<Digest, RewrittenKernel> kernels_;
  std::map<Digest, std::optional<double>> results_;  ///< of all candidates of the session
  std::vector<TriedIdea> ideas_;
  std::vector<Candidate> waiting_;  ///< to be asked for
  /// The objectives at the beginning of the round, of the user's source and of the operator
  std::optional<double> rewritten_before_, offered_before_;
  int round_ = 0;
  std::string stop_reason_;
};

}  // namespace atunner::jobs
