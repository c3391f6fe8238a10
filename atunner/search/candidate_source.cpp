#include "atunner/search/candidate_source.h"

#include <utility>

namespace atunner {

SearcherSource::SearcherSource(std::unique_ptr<Searcher> searcher, const ParameterSpace& space,
                               Configuration preferred)
    : searcher_(std::move(searcher)), space_(space), preferred_(std::move(preferred)) {}

std::vector<Candidate> SearcherSource::Ask(size_t n) {
  std::vector<Candidate> candidates;
  for (Configuration& configuration : searcher_->Ask(n)) {
    Provenance provenance;
    provenance.proposer = configuration == preferred_ ? "default"
                                                      : "search:" + std::string(searcher_->name());
    candidates.push_back(MakeCandidate(space_, std::move(configuration), std::move(provenance)));
  }
  return candidates;
}

void SearcherSource::Tell(const CandidateResult& result) {
  const Configuration* configuration = result.candidate.configuration();
  if (configuration == nullptr) return;
  searcher_->Tell({*configuration, result.objective, result.relative_error, result.others});
}

std::vector<Candidate> ListedCandidates::Ask(size_t n) {
  std::vector<Candidate> asked;
  for (; asked.size() < n && next_ < candidates_.size(); ++next_)
    asked.push_back(candidates_[next_]);
  return asked;
}

}  // namespace atunner
