#include "runtime/artifact_set.h"

#include <algorithm>
#include <array>
#include <utility>

namespace atunner::loader {
namespace {

Result<std::unique_ptr<ArtifactSet::Entry>> Read(const Path& folder) {
  auto entry = std::make_unique<ArtifactSet::Entry>();
  ATUNNER_TRY(entry->artifact, LoadArtifact(folder));
  entry->folder = folder;
  entry->folder_text = folder.string();
  entry->dims_text = DimsText(entry->artifact.spec.dims);
  for (const std::string& dim : entry->artifact.valid_sizes.dims)
    entry->free_dims_text += (entry->free_dims_text.empty() ? "" : " ") + dim;
  entry->dtype_text = std::string(Name(entry->artifact.spec.compute_dtype));
  return entry;
}

bool IsArtifact(const Path& folder) { return Exists(folder / "manifest.json"); }

/// Artifacts directly below `folder`, by name.
std::vector<Path> ArtifactsIn(const Path& folder) {
  std::vector<Path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (IsArtifact(entry.path())) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

Status ArtifactSet::Add(const Path& folder) {
  if (!Exists(folder)) return Fail(ErrorCode::kNotFound, "no such folder", folder.string());
  const std::vector<Path> folders = IsArtifact(folder) ? std::vector{folder} : ArtifactsIn(folder);
  if (folders.empty()) {
    return Fail(
        ErrorCode::kNotFound, "is no artifact and holds none", folder.string(),
        "name the folder that `atunner optimize` printed, or one that holds several of them");
  }
  std::vector<std::unique_ptr<Entry>> read;
  for (const Path& each : folders) {
    ATUNNER_TRY(auto entry, Read(each));
    read.push_back(std::move(entry));
  }
  for (auto& entry : read) entries_.push_back(std::move(entry));
  return {};
}

Result<std::shared_ptr<const ContextOwner>> ArtifactSet::OpenContext(int device) {
  if (!driver_) {
    ATUNNER_TRY(driver_, Driver::Open(libcuda_));
  }
  if (device < 0) return ContextOwner::Current(driver_);
  if (const auto known = primary_.find(device); known != primary_.end()) return known->second;
  ATUNNER_TRY(auto context, ContextOwner::Primary(driver_, device));
  primary_[device] = context;
  return context;
}

Result<std::shared_ptr<const ModuleOwner>> ArtifactSet::LoadImage(
    const std::shared_ptr<const ContextOwner>& context, size_t index, Image image) {
  auto& slot = modules_[{context->handle(), index, image}];
  if (auto loaded = slot.lock()) return loaded;
  const Entry& entry = *entries_[index];
  ATUNNER_TRY(const std::string bytes,
              ReadArtifactFile(entry.folder, entry.artifact,
                               image == Image::kCubin ? "kernel.cubin" : "kernel.ptx"));
  ATUNNER_TRY(auto loaded, ModuleOwner::Load(context, bytes));
  slot = loaded;
  return loaded;
}

/// The chosen image; a cubin that the driver refuses is replaced by the same kernel's PTX.
Result<std::shared_ptr<const ModuleOwner>> ArtifactSet::LoadEither(
    const std::shared_ptr<const ContextOwner>& context, const Choice& choice) {
  auto loaded = LoadImage(context, choice.index, choice.match.image);
  if (loaded || choice.match.image != Image::kCubin ||
      loaded.error().code != ErrorCode::kUnsupported)
    return loaded;
  if (!entries_[choice.index]->artifact.digests.contains("kernel.ptx")) return loaded;
  return LoadImage(context, choice.index, Image::kPtx);
}

Result<std::unique_ptr<LoadedKernel>> ArtifactSet::Choose(const Problem& problem, int device,
                                                          MatchQuality least) {
  const std::lock_guard lock(mutex_);
  ATUNNER_TRY(const auto context, OpenContext(device));
  std::vector<const Artifact*> artifacts;
  for (const auto& entry : entries_) artifacts.push_back(&entry->artifact);
  ATUNNER_TRY(const Choice choice, ChooseArtifact(artifacts, context->facts(), problem, least));
  ATUNNER_TRY(auto module, LoadEither(context, choice));
  return LoadedKernel::Make(std::move(module), entries_[choice.index]->artifact, problem.dims,
                            choice);
}

Result<std::unique_ptr<LoadedKernel>> ArtifactSet::LoadAtOwnSize(size_t index, int device) {
  const std::lock_guard lock(mutex_);
  ATUNNER_TRY(const auto context, OpenContext(device));
  const Artifact& artifact = entries_[index]->artifact;
  const Problem problem{artifact.name, {}, artifact.spec.dims, artifact.spec.attributes};
  ATUNNER_TRY(Choice choice, ChooseArtifact(std::array{&artifact}, context->facts(), problem,
                                            MatchQuality::kNone));
  choice.index = index;
  ATUNNER_TRY(auto module, LoadEither(context, choice));
  return LoadedKernel::Make(std::move(module), artifact, problem.dims, choice);
}

Result<std::shared_ptr<const ContextOwner>> ArtifactSet::ContextOf(int device) {
  const std::lock_guard lock(mutex_);
  return OpenContext(device);
}

}  // namespace atunner::loader
