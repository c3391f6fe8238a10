// Device memory with an owner, and files as memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "runtime/cuda_driver.h"

namespace atunner::loader {

/// Memory of cuMemAlloc, given back by the destructor.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// `bytes` 0 allocates nothing.
  static Result<DeviceMemory> Allocate(std::shared_ptr<const ContextOwner> context, uint64_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory() { Free(); }

  cuda::DevicePointer address() const { return address_; }

 private:
  void Free();

  std::shared_ptr<const ContextOwner> context_;
  cuda::DevicePointer address_ = 0;
};

/// A file that is read where it is looked at.
class MappedBytes {
 public:
  /// kNotFound if there is no such file; kInvalidInput if it has another size than `bytes`.
  static Result<MappedBytes> Open(const Path& path, uint64_t bytes);
  MappedBytes(MappedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedBytes& operator=(MappedBytes&&) = delete;
  ~MappedBytes();

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedBytes(void* data, size_t size) : data_(data), size_(size) {}

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace atunner::loader
