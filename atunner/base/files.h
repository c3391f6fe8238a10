// The door to the file system. Writes are atomic: a reader sees the old file or the new one, never
// half of one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "atunner/base/result.h"

namespace atunner {

using Path = std::filesystem::path;

/// False of what cannot be looked at too, a name that is too long say: the standard's own throw
/// then.
bool Exists(const Path& path);
bool IsFolder(const Path& path);

/// The whole file as bytes. kNotFound if it does not exist. kInvalidInput if it has more than
/// `max_bytes` or is no regular file: a folder, a pipe, or a device such as /dev/zero, which has no
/// end.
Result<std::string> ReadFile(const Path& path, size_t max_bytes = size_t{1} << 30);

/// The first `bytes` of a regular file, or the whole file if it is shorter. Errors as ReadFile.
Result<std::string> ReadStart(const Path& path, size_t bytes);

/// Writes to a temporary beside the file, syncs, renames over it. Makes the parent folders. What is
/// no file, /dev/stdout say, is written into.
Status WriteFileAtomic(const Path& named, std::string_view bytes);

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
  static Result<TemporaryDirectory> Make();
  /// For tests: where it cannot be made they end
  TemporaryDirectory() : TemporaryDirectory(Make().value()) {}
  ~TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept
      : path_(std::exchange(other.path_, Path())) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  const Path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(Path path) : path_(std::move(path)) {}

  Path path_;
};

}  // namespace atunner
