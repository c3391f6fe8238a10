#include "atunner/jobs/captures/shared_budget.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace atunner::jobs {
namespace {

constexpr int64_t kLeastTrials = 10;
constexpr double kLeastSeconds = 8;
// The search's part of a kernel's seconds. The baseline and the finals take the rest.
constexpr double kSearchShare = 0.4;

double PartOf(const KernelShare& share, double of) {
  return of > share.share ? share.share / of : 1;
}

}  // namespace

SharedBudget::SharedBudget(const Budget& budget, const std::vector<KernelShare>& shares,
                           const Clock& clock, double started)
    : budget_(budget), clock_(clock), started_(started) {
  for (const KernelShare& share : shares) all_ += share.obstacle.empty() ? share.share : 0;
  left_ = all_;
}

std::optional<KernelBudget> SharedBudget::Take(const KernelShare& share) {
  KernelBudget taken;
  if (budget_.trials) {
    const double part = static_cast<double>(*budget_.trials) * PartOf(share, all_);
    taken.search.trials = std::max(kLeastTrials, static_cast<int64_t>(part));
  }
  const double part = PartOf(share, std::exchange(left_, left_ - share.share));
  const bool first = std::exchange(first_, false);
  if (!budget_.seconds) return taken;
  const double seconds = *budget_.seconds - (clock_.Now() - started_);
  if (seconds < kLeastSeconds && !first) return std::nullopt;
  taken.seconds = std::max(kLeastSeconds, seconds * part);
  taken.search.seconds = kSearchShare * *taken.seconds;
  return taken;
}

}  // namespace atunner::jobs
