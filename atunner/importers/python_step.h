// A training step that a user's Python file makes: PyTorch writes it, in a process of its own.
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

}  // namespace atunner::importers
