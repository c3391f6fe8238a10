// Sizes that users name, in kernel texts that have names of their own.
#pragma once

#include <optional>

#include "atunner/operators/task.h"

namespace atunner {

/// The task with kSizePrefix before the names of its sizes, so that a user may call a size like a
/// kernel, a parameter or a keyword of CUDA. nullopt if the task has no sizes that users named. The
/// schedule of the prefixed task is put back into the task's own names by RenamedSizes.
std::optional<Task> WithPrefixedSizes(const Task& task);

}  // namespace atunner
