// Compiles, runs and verifies one kernel per operator and type.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

struct SelfTestRow {
  std::string operator_name;
  DType dtype = DType::kFloat32;
  std::string kernel;  ///< "schedule" or "plain kernel"
  Verdict verdict;
};

struct SelfTestResult {
  std::string gpu;
  Evidence evidence = Evidence::kPredicted;
  std::vector<SelfTestRow> rows;
  int failed = 0;
};

/// `on_row` is called with each row as it is done.
Result<SelfTestResult> SelfTest(const TargetChoice& choice, Services& services,
                                const std::function<void(const SelfTestRow&)>& on_row);

}  // namespace atunner::jobs
