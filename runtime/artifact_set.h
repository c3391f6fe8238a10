// Artifacts to choose among, and the modules that were loaded of them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/artifact/artifact.h"
#include "runtime/cuda_driver.h"
#include "runtime/loaded_kernel.h"
#include "runtime/match.h"

namespace atunner::loader {

class ArtifactSet {
 public:
  struct Entry {
    Artifact artifact;
    Path folder;
    // Rendered once, because C callers receive pointers.
    std::string folder_text, dims_text, free_dims_text, dtype_text;
  };

  /// `libcuda` as Driver::Open takes it; nothing is opened yet.
  explicit ArtifactSet(std::string libcuda) : libcuda_(std::move(libcuda)) {}

  /// An artifact folder, or each artifact in a folder of them (those whose files are damaged fail
  /// the whole call).
  Status Add(const Path& folder);
  size_t size() const { return entries_.size(); }
  const Entry& entry(size_t index) const { return *entries_[index]; }

  /// `device`: a driver's number, or -1 for the current context. Thread-safe.
  Result<std::unique_ptr<LoadedKernel>> Choose(const Problem& problem, int device,
                                               MatchQuality least);
  /// The artifact `index` alone, at the size that it was tuned for. Thread-safe.
  Result<std::unique_ptr<LoadedKernel>> LoadAtOwnSize(size_t index, int device);
  /// The context in which kernels for `device` are loaded. Thread-safe.
  Result<std::shared_ptr<const ContextOwner>> ContextOf(int device);

 private:
  Result<std::shared_ptr<const ContextOwner>> OpenContext(int device);
  Result<std::shared_ptr<const ModuleOwner>> LoadImage(
      const std::shared_ptr<const ContextOwner>& context, size_t index, Image image);
  Result<std::shared_ptr<const ModuleOwner>> LoadEither(
      const std::shared_ptr<const ContextOwner>& context, const Choice& choice);

  std::string libcuda_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::mutex mutex_;  ///< guards the members below
  std::shared_ptr<const Driver> driver_;
  std::map<int, std::shared_ptr<const ContextOwner>> primary_;
  /// Loaded modules by context, entry and image. The pointers are weak: a module is unloaded with
  /// the last kernel that uses it.
  std::map<std::tuple<cuda::Context, size_t, Image>, std::weak_ptr<const ModuleOwner>> modules_;
};

}  // namespace atunner::loader
