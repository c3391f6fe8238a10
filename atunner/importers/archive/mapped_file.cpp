#include "atunner/importers/archive/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace atunner::importers {

Result<MappedFile> MappedFile::Open(const Path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const auto code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidInput;
    return Fail(code, std::string("cannot be opened: ") + std::strerror(errno), path.string());
  }
  struct stat status = {};
  const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = regular ? static_cast<size_t>(status.st_size) : 0;
  void* data = size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  close(file);
  if (!regular) return Invalid("this is no regular file", path.string());
  if (data == MAP_FAILED)
    return Fail(ErrorCode::kUnavailable, "cannot be mapped into memory", path.string());
  return MappedFile(data, size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace atunner::importers
