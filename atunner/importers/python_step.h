// A training step that a user's Python file makes: PyTorch writes or verifies it, in a process of
// its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::importers {

/// The programs of a step in files that live as long as this.
struct WrittenSteps {
  TemporaryDirectory folder;
  std::vector<std::string> files;  ///< one for each size of the batch, or one
};

/// Runs `$ATUNNER_PYTHON`, or python3, with the packages torch and atunner, which calls the
/// function ("make_step" if `text` names none) of the file and writes the step that it returns.
/// Errors: kInvalidInput with what Python says, kUnavailable if a package is missing.
Result<WrittenSteps> WriteSteps(const std::string& text, const std::vector<int64_t>& batches);

/// What `atunner.verify_step` found.
struct StepVerdict {
  bool passed = false;
  std::string json;  ///< of the report
  std::string text;
};

/// As WriteSteps, but runs the step as a plan for `target_gpu`, on that GPU or, with
/// ATUNNER_LIBCUDA, on the virtual one, and compares `steps` steps with PyTorch's own.
Result<StepVerdict> VerifyStep(const std::string& text, int64_t steps,
                               const std::string& target_gpu);

}  // namespace atunner::importers
