// A mark that a process works on a run: a locked file beside the store. The system unlocks it
// however the process ends.
#pragma once

#include <string>
#include <utility>

#include "atunner/base/files.h"

namespace atunner {

/// Several processes may hold the mark of a run at once. In a read-only folder no mark can be made,
/// and the run counts as interrupted.
class RunningMark {
 public:
  RunningMark(const Path& store, const std::string& run);
  ~RunningMark();
  RunningMark(RunningMark&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  RunningMark& operator=(RunningMark&&) = delete;

  static bool IsHeld(const Path& store, const std::string& run);
  /// Removes the file, when the run has ended or was deleted.
  static void Remove(const Path& store, const std::string& run);

 private:
  int file_ = -1;
};

}  // namespace atunner
