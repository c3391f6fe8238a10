// Libraries opened at run time: CUDA's are never linked, so one binary starts anywhere.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner {

/// A shared library opened with dlopen and kept open until exit (CUDA libraries do not survive
/// dlclose).
class DynamicLibrary {
 public:
  /// Opens the first of `names` that loads, tried bare and then in each of `folders`. kUnavailable
  /// lists what was tried.
  static Result<DynamicLibrary> Open(std::span<const std::string> names,
                                     std::span<const std::string> folders = {});

  /// Address of `symbol`, or nullptr.
  void* Find(const char* symbol) const;

  template <class Function>
  Status Bind(Function*& slot, const char* symbol) const {
    slot = reinterpret_cast<Function*>(Find(symbol));
    return slot == nullptr ? Lacks(symbol) : Status();
  }

  /// The path the loader found.
  const std::string& path() const { return path_; }

 private:
  Status Lacks(std::string_view symbol) const;

  void* handle_ = nullptr;
  std::string path_;
};

/// Existing folders that may hold CUDA's libraries: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda*,
/// Debian's and those of pip's nvidia packages.
std::vector<std::string> CudaLibraryFolders();
/// The libraries of CUDA that are opened at run time.
enum class CudaLibrary { kDriver, kNvrtc, kNvJitLink, kNvml, kCublas, kCudnn };
/// Opens the library under the file names of the versions that are known, the newest first.
Result<DynamicLibrary> OpenCudaLibrary(CudaLibrary library);

/// Folders with cuda_runtime.h / cuda_fp16.h, best first; empty when no toolkit is installed.
std::vector<std::string> CudaIncludeFolders();

}  // namespace atunner
