// The kernels that a winner is compared with: the task's plain kernel, before the search, and
// vendor libraries, after it.
#pragma once

#include <optional>

#include "atunner/tune/session_context.h"

namespace atunner {

class BaselinePhase {
 public:
  explicit BaselinePhase(const SessionContext& context) : context_(context) {}

  /// Verifies and times the plain kernel, if the request asks for it. kInvalidInput when the task
  /// is a user's kernel that does not finish in time: no candidate would either.
  Status Measure();
  /// Times the winner and each baseline in pairs, one right after the other.
  Status Compare();
  /// The plain kernel; nullopt before Measure() and for tasks without one.
  const std::optional<CandidateKernel>& plain() const { return plain_; }

 private:
  Status Examine(Baseline& baseline, bool is_users);
  void Add(Baseline baseline);

  const SessionContext& context_;
  std::optional<CandidateKernel> plain_;
};

}  // namespace atunner
