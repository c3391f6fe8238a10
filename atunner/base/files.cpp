#include "atunner/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

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

/// Into what is there already and is no file: a pipe, a terminal, /dev/null.
Status WriteThrough(const Path& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return SystemFailure("cannot open", path, errno);
  Status written = WriteAll(fd, bytes);
  ::close(fd);
  if (!written) written.error().where = path.string();
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
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return Fail(ErrorCode::kNotFound, "no such file", path.string());
  }
  if (std::filesystem::is_directory(status))
    return Invalid("is a folder, a file is needed", path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) return SystemFailure("cannot open", path, errno);
  std::string text;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk) || in.gcount() > 0) {
    text.append(chunk, static_cast<size_t>(in.gcount()));
    if (text.size() > max_bytes) {
      return Invalid("file is larger than " + std::to_string(max_bytes) + " bytes", path.string());
    }
  }
  return text;
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
  // What a link names is replaced, and not the link.
  const bool linked = std::filesystem::is_symlink(named, unknown) &&
                      std::filesystem::is_regular_file(status);
  const Path path = linked ? std::filesystem::canonical(named, unknown) : named;
  if (path.has_parent_path()) ATUNNER_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
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
