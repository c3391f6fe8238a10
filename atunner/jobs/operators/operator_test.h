// Verifies every operator and gradient, in every type, at three shapes.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/jobs/operators/operator_cases.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

struct OperatorCaseResult {
  std::string kernel;   ///< the family whose default configuration was run, or "plain"
  std::string verdict;  ///< a name of verdict.def, or "error"
  std::string reason;
  double error = 0;   ///< relative error on normal inputs
  double honest = 0;  ///< the plain kernel's error on normal inputs
  double compile_seconds = 0;
  double begin_seconds = 0;  ///< until the judge is ready
  double seconds = 0;        ///< all together
  bool passed() const { return verdict == "correct"; }
};

struct OperatorTestResult {
  std::string gpu;
  Evidence evidence = Evidence::kPredicted;
  std::vector<OperatorCase> cases;
  /// One for each case; nullopt for a case that there was no time for.
  std::vector<std::optional<OperatorCaseResult>> results;
  double seconds = 0;
};

/// Cases are compiled and judged in parallel, each thread with a judge of its own. Events come from
/// these threads, one at a time. kInvalidInput where no operator has such a name.
Result<OperatorTestResult> TestOperators(const OperatorTestRequest& request, Services& services,
                                         const EventSink& events, std::stop_token stop);

}  // namespace atunner::jobs
