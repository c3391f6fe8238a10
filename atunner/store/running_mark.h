// Who works on a run: a locked file beside the store, which the system unlocks however its process
// ends.
#pragma once

#include <string>
#include <utility>

#include "atunner/base/files.h"

namespace atunner {

/// Several processes may hold a run's mark at once. Where it cannot be made (a folder that is
/// read-only) there is none.
class RunningMark {
 public:
  RunningMark(const Path& store, const std::string& run);
  ~RunningMark();
  RunningMark(RunningMark&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  RunningMark& operator=(RunningMark&&) = delete;

  static bool IsHeld(const Path& store, const std::string& run);
  /// Of a run that came to its end, or is no more.
  static void Remove(const Path& store, const std::string& run);

 private:
  int file_ = -1;
};

}  // namespace atunner
