#include "atunner/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace atunner {
namespace {

ErrorCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EIO:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInvalidInput;
  }
}

std::string HintOf(int error) {
  switch (error) {
    case EACCES:
    case EROFS:
    case EPERM:
      return "choose a folder you may write to, or change its permissions";
    case ENOSPC:
    case EDQUOT:
      return "free some disk space, or choose another folder";
    default:
      return "";
  }
}

std::unexpected<Error> SystemFailure(std::string_view action, const Path& path, int error) {
  return Fail(CodeOf(error), std::string(action) + ": " + std::strerror(error), path.string(),
              HintOf(error));
}

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return Fail(CodeOf(errno), std::strerror(errno), "", HintOf(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

/// Writes into an existing pipe, terminal or device such as /dev/null.
Status WriteThrough(const Path& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return SystemFailure("cannot open", path, errno);
  Status written = WriteAll(fd, bytes);
  ::close(fd);
  if (!written) written.error().where = path.string();
  return written;
}

/// A regular file, open for reading.
class OpenFile {
 public:
  static Result<OpenFile> Regular(const Path& path) {
    // Without O_NONBLOCK, a FIFO that nothing writes to would block here.
    OpenFile file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file.fd_ < 0) {
      if (errno == ENOENT || errno == ENOTDIR)
        return Fail(ErrorCode::kNotFound, "no such file", path.string());
      return SystemFailure("cannot open", path, errno);
    }
    struct stat status{};
    if (::fstat(file.fd_, &status) != 0) return SystemFailure("cannot open", path, errno);
    if (S_ISDIR(status.st_mode)) return Invalid("is a folder, a file is needed", path.string());
    if (!S_ISREG(status.st_mode)) {
      return Invalid("is a pipe or a device, a regular file is needed", path.string(),
                     "write its contents to a file first: they may have no end");
    }
    file.size_ = static_cast<size_t>(status.st_size);
    return file;
  }
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  OpenFile& operator=(OpenFile&&) = delete;

  size_t size() const { return size_; }

  /// At most `most` bytes from the start. `path` is for the error.
  Result<std::string> Read(size_t most, const Path& path) const {
    std::string text;
    std::array<char, 1 << 16> chunk;
    while (text.size() < most) {
      const ssize_t n = ::read(fd_, chunk.data(), std::min(chunk.size(), most - text.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return SystemFailure("cannot read", path, errno);
      if (n == 0) break;
      text.append(chunk.data(), static_cast<size_t>(n));
    }
    return text;
  }

 private:
  explicit OpenFile(int fd) : fd_(fd) {}

  int fd_;
  size_t size_ = 0;
};

/// Writes a temporary file beside `path` and renames it to `path`.
Status Replace(const Path& path, std::string_view bytes) {
  std::string temporary = path.string() + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return SystemFailure("cannot write", path, errno);
  ::fchmod(fd, 0644);
  Status written = WriteAll(fd, bytes);
  if (written && ::fsync(fd) != 0) written = SystemFailure("cannot write", path, errno);
  ::close(fd);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = SystemFailure("cannot write", path, errno);
  if (!written) {
    ::unlink(temporary.c_str());
    written.error().where = path.string();
  }
  return written;
}

Path HomeBased(const char* variable, const char* fallback) {
  if (const char* base = std::getenv(variable); base && *base) return Path(base) / "atunner";
  const char* home = std::getenv("HOME");
  return Path(home && *home ? home : "/tmp") / fallback / "atunner";
}

}  // namespace

bool Exists(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool IsFolder(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

Result<std::string> ReadFile(const Path& path, size_t max_bytes) {
  ATUNNER_TRY(const OpenFile file, OpenFile::Regular(path));
  if (file.size() > max_bytes)
    return Invalid("file is larger than " + std::to_string(max_bytes) + " bytes", path.string());
  ATUNNER_TRY(std::string text, file.Read(max_bytes + 1, path));
  if (text.size() > max_bytes)  // it grew meanwhile, or has no size, as files in /proc
    return Invalid("file is larger than " + std::to_string(max_bytes) + " bytes", path.string());
  return text;
}

Result<std::string> ReadStart(const Path& path, size_t bytes) {
  ATUNNER_TRY(const OpenFile file, OpenFile::Regular(path));
  return file.Read(bytes, path);
}

Status MakeDirectories(const Path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return SystemFailure("cannot make folder", path, error.value());
  if (!IsFolder(path)) return Invalid("is not a folder", path.string());
  return {};
}

Status WriteFileAtomic(const Path& named, std::string_view bytes) {
  std::error_code unknown;
  const auto status = std::filesystem::status(named, unknown);
  if (std::filesystem::is_other(status)) return WriteThrough(named, bytes);
  // A symbolic link stays; the file that it names is replaced.
  const bool linked = std::filesystem::is_symlink(named, unknown) &&
                      std::filesystem::is_regular_file(status);
  const Path path = linked ? std::filesystem::canonical(named, unknown) : named;
  if (path.has_parent_path()) ATUNNER_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  return Replace(path, bytes);
}

Path UserDataDirectory() { return HomeBased("XDG_DATA_HOME", ".local/share"); }
Path UserCacheDirectory() { return HomeBased("XDG_CACHE_HOME", ".cache"); }

Path SelfExecutable() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

Result<TemporaryDirectory> TemporaryDirectory::Make() {
  const char* named = std::getenv("TMPDIR");
  const Path parent = named && *named ? named : "/tmp";
  std::string pattern = (parent / "atunner.XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    const int error = errno;
    return Fail(CodeOf(error),
                std::string("cannot make a temporary folder: ") + std::strerror(error),
                parent.string(), "let TMPDIR name a folder you may write to");
  }
  return TemporaryDirectory(Path(pattern));
}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace atunner
