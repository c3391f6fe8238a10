// The door to the file system. Writes are atomic: a reader sees the old file or the new one, never half of one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner {

using Path = std::filesystem::path;

/// Whole file as bytes. kNotFound when it does not exist; kInvalidInput for a folder or above `max_bytes`.
Result<std::string> ReadFile(const Path& path, size_t max_bytes = size_t{1} << 30);

/// Writes to a temporary beside `path`, syncs, renames over it. Makes the parent folders.
Status WriteFileAtomic(const Path& path, std::string_view bytes);

Status MakeDirectories(const Path& path);

/// $XDG_DATA_HOME/atunner, else ~/.local/share/atunner: trials and artifacts.
Path UserDataDirectory();
/// $XDG_CACHE_HOME/atunner, else ~/.cache/atunner: whatever can be made again.
Path UserCacheDirectory();

/// Absolute path of the running executable, for starting workers.
Path SelfExecutable();

/// A folder that is removed with its contents when the object dies.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(std::string_view prefix = "atunner");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace atunner
