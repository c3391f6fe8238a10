// The sources of a tuning session's candidates: a search over a schedule template, a list that a
// user wrote, a program that rewrites kernels. All are used in the same way, by ask and tell.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/candidate/candidate.h"
#include "atunner/search/searcher.h"

namespace atunner {

/// The result of a candidate.
struct CandidateResult {
  Candidate candidate;
  std::optional<double> objective;  ///< the run's first objective; nullopt: it failed
  double relative_error = 0;        ///< standard error over the value; 0: exact
  /// Further objectives, in the order of the run's; smaller is better.
  std::vector<double> others = {};
};

class CandidateSource {
 public:
  virtual ~CandidateSource() = default;
  /// False when results do not change what it proposes.
  virtual bool learns() const { return true; }
  /// Up to `n` candidates; fewer or none when it has no more to propose now.
  virtual std::vector<Candidate> Ask(size_t n) = 0;
  /// The result of any candidate of the session, also of another source or of an earlier session.
  virtual void Tell(const CandidateResult& result) = 0;
};

/// The configurations of one space that a searcher proposes.
class SearcherSource : public CandidateSource {
 public:
  /// `space` must outlive the object. `preferred` is the template's own first choice: its proposer
  /// is "default", that of others "search:" and the searcher's name.
  SearcherSource(std::unique_ptr<Searcher> searcher, const ParameterSpace& space,
                 Configuration preferred);

  bool learns() const override { return searcher_->learns(); }
  std::vector<Candidate> Ask(size_t n) override;
  /// Results of whole kernels, which are no configurations, are ignored.
  void Tell(const CandidateResult& result) override;

 private:
  std::unique_ptr<Searcher> searcher_;
  const ParameterSpace& space_;
  Configuration preferred_;
};

/// Candidates known in advance, proposed once each in their order.
class ListedCandidates : public CandidateSource {
 public:
  explicit ListedCandidates(std::vector<Candidate> candidates)
      : candidates_(std::move(candidates)) {}

  bool learns() const override { return false; }
  std::vector<Candidate> Ask(size_t n) override;
  void Tell(const CandidateResult&) override {}

 private:
  std::vector<Candidate> candidates_;
  size_t next_ = 0;
};

}  // namespace atunner
