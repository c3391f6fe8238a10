// The budget of a command that tunes several kernels of a program.
#pragma once

#include <optional>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/jobs/captures/kernel_shares.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// What one kernel may use.
struct KernelBudget {
  Budget search;                  ///< of its tuning session, whose seconds are those of the search
  std::optional<double> seconds;  ///< with baseline and finals
};

/// Divides a budget among the kernels that can be tuned, by their share of the program's time.
/// Seconds are those of all kernels together; what one leaves or overdraws changes the next.
class SharedBudget {
 public:
  /// `started`: time of the clock from which the budget's seconds count. `clock` must outlive it.
  SharedBudget(const Budget& budget, const std::vector<KernelShare>& shares, const Clock& clock,
               double started);

  /// The part of the next kernel, at least ten trials; nullopt if less than 8 s are left and it is
  /// not the first.
  std::optional<KernelBudget> Take(const KernelShare& share);

 private:
  Budget budget_;
  const Clock& clock_;
  double started_;
  double all_ = 0;   ///< shares of the kernels that can be tuned
  double left_ = 0;  ///< of those whose turn is not over
  bool first_ = true;
};

}  // namespace atunner::jobs
