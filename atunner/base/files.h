// Access to the file system. Writes are atomic: a reader sees the old file or the new one, never
// half of one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "atunner/base/result.h"

namespace atunner {

using Path = std::filesystem::path;

/// True if there is a file or folder of that name. Unlike std::filesystem's, these two never throw:
/// they are false for a path that cannot be examined, e.g. one that is too long.
bool Exists(const Path& path);
bool IsFolder(const Path& path);

/// The whole file as bytes. kNotFound if it does not exist. kInvalidInput if it has more than
/// `max_bytes` or is no regular file: a folder, a pipe, or a device such as /dev/zero, which has no
/// end.
Result<std::string> ReadFile(const Path& path, size_t max_bytes = size_t{1} << 30);

/// The first `bytes` of a regular file, or the whole file if it is shorter. Errors as ReadFile.
Result<std::string> ReadStart(const Path& path, size_t bytes);

/// Writes to a temporary file in the same folder, syncs it and renames it over `named`; makes
/// parent folders. Pipes and devices such as /dev/stdout are written into directly.
Status WriteFileAtomic(const Path& named, std::string_view bytes);

Status MakeDirectories(const Path& path);

/// $XDG_DATA_HOME/atunner, else ~/.local/share/atunner: trials and artifacts.
Path UserDataDirectory();
/// $XDG_CACHE_HOME/atunner, else ~/.cache/atunner: data that can be made again.
Path UserCacheDirectory();

/// Absolute path of the running executable, for starting workers.
Path SelfExecutable();

/// A folder that is removed with its contents by the destructor.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> Make();
  /// For tests: ends the program if the folder cannot be made
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
