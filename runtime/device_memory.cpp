#include "runtime/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace atunner::loader {

Result<DeviceMemory> DeviceMemory::Allocate(std::shared_ptr<const ContextOwner> context,
                                            uint64_t bytes) {
  DeviceMemory memory;
  memory.context_ = std::move(context);
  if (bytes == 0) return memory;
  const ContextScope scope(*memory.context_);
  ATUNNER_RETURN_IF_ERROR(scope.status());
  const Driver& driver = memory.context_->driver();
  ATUNNER_RETURN_IF_ERROR(driver.Check(driver.cu().memory.allocate(&memory.address_, bytes),
                                       "allocate " + std::to_string(bytes) + " bytes"));
  return memory;
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  Free();
  context_ = std::move(other.context_);
  address_ = std::exchange(other.address_, 0);
  return *this;
}

void DeviceMemory::Free() {
  if (address_ == 0) return;
  const ContextScope scope(*context_);
  if (scope.status()) context_->driver().cu().memory.free(address_);
  address_ = 0;
}

Result<MappedBytes> MappedBytes::Open(const Path& path, uint64_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Fail(ErrorCode::kNotFound, std::string("cannot be read: ") + std::strerror(errno),
                path.string(), "is the folder complete?");
  struct ::stat found = {};
  const bool fits = ::fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
                    static_cast<uint64_t>(found.st_size) == bytes;
  void* const data = fits ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  if (!fits)
    return Invalid("has not the " + std::to_string(bytes) + " bytes that the plan states",
                   path.string(), "is the folder complete?");
  if (data == MAP_FAILED)
    return Fail(ErrorCode::kUnavailable, std::string("cannot be mapped: ") + std::strerror(errno),
                path.string());
  return MappedBytes(data, bytes);
}

MappedBytes::~MappedBytes() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace atunner::loader
