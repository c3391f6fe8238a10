// The candidates that a session has still to compile, from all of its sources.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "atunner/model/trial/trial.h"
#include "atunner/search/candidate_source.h"
#include "atunner/tune/objectives.h"

namespace atunner {

/// Asks several sources in turn and drops candidates that the run has already.
class Proposals {
 public:
  /// The very first candidate is asked of `search`, so that a template's own first choice is always
  /// judged; then `others` are asked before `search`. All must outlive the object.
  Proposals(CandidateSource& search, std::vector<CandidateSource*> others,
            const std::vector<Objective>& objectives)
      : search_(search), others_(std::move(others)), objectives_(objectives) {}

  /// Up to `n` candidates that were neither asked for nor observed before.
  std::vector<Candidate> Ask(size_t n);
  /// Passes a result on to every source.
  void Observe(const Trial& trial);
  bool learns() const { return search_.learns(); }
  /// True from the first Ask() of a new run until the result of its first candidate.
  bool awaits_first() const { return first_.has_value(); }

 private:
  void AskOne(CandidateSource& source, size_t n, std::vector<Candidate>& candidates);

  CandidateSource& search_;
  std::vector<CandidateSource*> others_;
  const std::vector<Objective>& objectives_;
  std::set<Digest> known_;       ///< ids of candidates asked for or observed
  std::optional<Digest> first_;  ///< id of the run's first candidate, until its result is there
};

}  // namespace atunner
