// A file as memory: archives of many gigabytes are read where they are looked at.
#pragma once

#include <string_view>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::importers {

class MappedFile {
 public:
  /// Maps a regular file for reading. kNotFound if there is none, kInvalidInput for a folder or a
  /// device.
  static Result<MappedFile> Open(const Path& path);
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace atunner::importers
