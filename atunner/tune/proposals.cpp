#include "atunner/tune/proposals.h"

#include <algorithm>
#include <utility>

namespace atunner {
namespace {

CandidateResult ResultOf(const Trial& trial, const std::vector<Objective>& objectives) {
  const std::vector<double> values = ValuesOf(trial, objectives);
  if (values.empty()) return {trial.candidate, std::nullopt};
  const double error = objectives.front() == Objective::kTime ? RelativeError(trial) : 0;
  return {trial.candidate, values.front(), error, {values.begin() + 1, values.end()}};
}

}  // namespace

void Proposals::AskOne(CandidateSource& source, size_t n, std::vector<Candidate>& candidates) {
  if (n == 0) return;
  for (Candidate& candidate : source.Ask(n)) {
    if (known_.insert(candidate.id).second) candidates.push_back(std::move(candidate));
  }
}

std::vector<Candidate> Proposals::Ask(size_t n) {
  std::vector<Candidate> candidates;
  const bool is_first = known_.empty();
  if (is_first && !others_.empty()) AskOne(search_, std::min<size_t>(n, 1), candidates);
  for (CandidateSource* source : others_) AskOne(*source, n - candidates.size(), candidates);
  AskOne(search_, n - candidates.size(), candidates);
  if (is_first && !candidates.empty()) first_ = candidates.front().id;
  return candidates;
}

void Proposals::Observe(const Trial& trial) {
  known_.insert(trial.candidate.id);
  if (first_ == trial.candidate.id) first_.reset();
  const CandidateResult result = ResultOf(trial, objectives_);
  for (CandidateSource* source : others_) source->Tell(result);
  search_.Tell(result);
}

}  // namespace atunner
