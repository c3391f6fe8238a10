#include "atunner/store/running_mark.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace atunner {
namespace {

Path FileOf(const Path& store, const std::string& run) {
  return Path(store.string() + ".running") / run;
}

}  // namespace

RunningMark::RunningMark(const Path& store, const std::string& run) {
  const Path path = FileOf(store, run);
  if (!MakeDirectories(path.parent_path())) return;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ >= 0) ::flock(file_, LOCK_SH);
}

RunningMark::~RunningMark() {
  if (file_ >= 0) ::close(file_);
}

bool RunningMark::IsHeld(const Path& store, const std::string& run) {
  const int file = ::open(FileOf(store, run).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = ::flock(file, LOCK_EX | LOCK_NB) != 0;
  ::close(file);
  return held;
}

void RunningMark::Remove(const Path& store, const std::string& run) {
  std::error_code ignored;
  std::filesystem::remove(FileOf(store, run), ignored);
  std::filesystem::remove(FileOf(store, run).parent_path(), ignored);  // if it was the last one
}

}  // namespace atunner
