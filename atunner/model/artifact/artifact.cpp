#include "atunner/model/artifact/artifact.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace atunner {
namespace {

constexpr std::string_view kManifest = "manifest.json";
/// Beside an artifact that was tuned for a captured program (atunner/capture/replacement.h).
constexpr std::string_view kReplacement = "replacement.json";
constexpr std::string_view kPatch = "faster.diff";
constexpr std::array<std::string_view, 2> kReports = {"report.html", "report.md"};
constexpr std::string_view kAllButManifest[] = {"kernel.cu", "kernel.ptx", "kernel.cubin",
                                                "report.html", "report.md"};
/// A manifest is some tens of KiB; the samples of a long measurement may make it a few MiB.
constexpr size_t kMaxManifestBytes = size_t{64} << 20;

std::string_view TextOf(const ArtifactFiles& files, std::string_view name) {
  if (name == "kernel.cu") return files.source;
  if (name == "kernel.ptx") return files.ptx;
  if (name == "kernel.cubin") return files.cubin;
  return name == "report.html" ? files.report_html : files.report_markdown;
}

/// kInvalidInput with the reason when an artifact must not replace what is at `folder`.
Status CheckReplaceable(const Path& folder) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(folder, error);
  if (status.type() == std::filesystem::file_type::not_found) return {};
  if (status.type() != std::filesystem::file_type::directory)
    return Invalid("exists and is no folder", folder.string(),
                   "name another folder for the artifact");
  bool only_reports = true;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool report = std::ranges::find(kReports, name) != kReports.end();
    const bool kernel = std::ranges::find(kArtifactKernelFiles, name) != kArtifactKernelFiles.end();
    only_reports = only_reports && report;
    if (!report && !kernel && name != kManifest && name != kReplacement && name != kPatch) {
      return Invalid("holds '" + name + "', which is no part of an artifact; nothing was written",
                     folder.string(), "name another folder, or an empty one");
    }
  }
  if (error) return Invalid("cannot be read: " + error.message(), folder.string());
  if (only_reports) return {};
  // A kernel.cu alone may be the user's own. Whether the old manifest is sound does not matter,
  // only that it is one.
  const std::string manifest = ReadFile(folder / kManifest, kMaxManifestBytes).value_or("");
  if (manifest.find("\"atunner-artifact-") != std::string::npos) return {};
  return Invalid("is not empty and no artifact; nothing was written", folder.string(),
                 "name another folder, or an empty one");
}

std::unexpected<Error> SystemFailure(const std::string& what, const Path& folder) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT;
  return Fail(full ? ErrorCode::kUnavailable : ErrorCode::kInvalidInput,
              what + ": " + std::strerror(error), folder.string(),
              full ? "free some disk space, or choose another folder" : "choose another folder");
}

/// A folder beside `folder` in the making; removed with its contents unless it was renamed away.
class Sibling {
 public:
  static Result<Sibling> Make(const Path& folder) {
    ATUNNER_RETURN_IF_ERROR(MakeDirectories(folder.parent_path()));
    std::string pattern = (folder.parent_path() / ("." + folder.filename().string() + ".XXXXXX"))
                              .string();
    if (::mkdtemp(pattern.data()) == nullptr)
      return SystemFailure("cannot make a folder here", folder.parent_path());
    ::chmod(pattern.c_str(), 0755);
    return Sibling(pattern);
  }
  ~Sibling() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Sibling(Sibling&& other) noexcept : path_(std::exchange(other.path_, Path())) {}
  Sibling& operator=(Sibling&&) = delete;

  const Path& path() const { return path_; }

  /// Moves the folder to `target`. A folder that was there is removed after it was moved away.
  Status MoveTo(const Path& target) {
    if (::rename(path_.c_str(), target.c_str()) == 0) {  // nothing there, or an empty folder
      path_.clear();
    } else if (errno != ENOTEMPTY && errno != EEXIST) {
      return SystemFailure("cannot put the artifact in its place", target);
    } else if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) !=
               0) {
      return MoveInTwoSteps(target);
    }
    return SyncFolder(target.parent_path());
  }

 private:
  explicit Sibling(Path path) : path_(std::move(path)) {}

  /// For file systems that cannot exchange: for a moment there is no folder at `target`, but never
  /// half of one.
  Status MoveInTwoSteps(const Path& target) {
    const Path old = path_.string() + ".old";
    if (::rename(target.c_str(), old.c_str()) != 0)
      return SystemFailure("cannot replace the artifact", target);
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      const auto failure = SystemFailure("cannot replace the artifact", target);
      ::rename(old.c_str(), target.c_str());
      return failure;
    }
    path_ = old;  // removed by the destructor
    return SyncFolder(target.parent_path());
  }

  static Status SyncFolder(const Path& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    if (fd < 0) return {};
    ::fsync(fd);  // best effort: some file systems refuse it for folders
    ::close(fd);
    return {};
  }

  Path path_;
};

/// The folder without links and a trailing slash, so that its parent and its name are known.
Result<Path> Place(const Path& folder) {
  std::error_code error;
  const Path target = std::filesystem::weakly_canonical(std::filesystem::absolute(folder / "."),
                                                        error);
  if (error) return Invalid("is no usable path: " + error.message(), folder.string());
  return target.has_filename() ? target : target.parent_path();
}

/// The manifest last: without it there is no artifact.
Status WriteAll(const Path& folder, const std::string& manifest, const ArtifactFiles& files) {
  for (const std::string_view file : kAllButManifest) {
    if (TextOf(files, file).empty()) continue;
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / file, TextOf(files, file)));
  }
  return WriteFileAtomic(folder / kManifest, manifest);
}

/// For a folder that cannot be replaced as a whole. `why` is part of the error when it cannot be
/// written either.
Status SaveInPlace(const Path& folder, const std::string& manifest, const ArtifactFiles& files,
                   const Error& why) {
  if (why.code == ErrorCode::kUnavailable || !MakeDirectories(folder)) return std::unexpected(why);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return std::unexpected(why);
  // The old manifest goes first: it must never stand beside files of another kernel.
  std::error_code ignored;
  std::filesystem::remove(folder / kManifest, ignored);
  for (const std::string_view file : kAllButManifest)
    std::filesystem::remove(folder / file, ignored);
  return WriteAll(folder, manifest, files);
}

}  // namespace

Status CheckArtifactFolder(const Path& folder) {
  ATUNNER_TRY(const Path place, Place(folder));
  ATUNNER_RETURN_IF_ERROR(CheckReplaceable(place));
  std::error_code error;
  if (std::filesystem::exists(place, error) && ::access(place.c_str(), W_OK | X_OK) != 0)
    return SystemFailure("cannot be written", place);
  return {};
}

Status SaveArtifact(const Path& folder, const Artifact& artifact, const ArtifactFiles& files) {
  ATUNNER_TRY(const Path place, Place(folder));
  Artifact complete = artifact;
  complete.digests.clear();
  for (const std::string_view file : kArtifactKernelFiles) {
    if (!TextOf(files, file).empty())
      complete.digests[std::string(file)] = DigestOf(TextOf(files, file));
  }
  const std::string manifest = ArtifactManifest(complete);
  // An artifact that could not be read back must not be written.
  ATUNNER_TRY([[maybe_unused]] const Artifact readable,
              ParseArtifactManifest(manifest, "artifact"));
  ATUNNER_RETURN_IF_ERROR(CheckReplaceable(place));
  auto sibling = Sibling::Make(place);
  if (!sibling) return SaveInPlace(place, manifest, files, sibling.error());
  ATUNNER_RETURN_IF_ERROR(WriteAll(sibling->path(), manifest, files));
  const Status moved = sibling->MoveTo(place);
  return moved ? moved : SaveInPlace(place, manifest, files, moved.error());
}

Result<std::string> ReadArtifactFile(const Path& folder, const Artifact& artifact,
                                     std::string_view file) {
  const auto digest = artifact.digests.find(file);
  if (digest == artifact.digests.end()) return std::string();
  const bool empty = digest->second == DigestOf(std::string_view());
  if (empty && !Exists(folder / file)) return std::string();
  auto text = ReadFile(folder / file);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "is missing from the artifact", (folder / file).string(),
                "copy the whole folder, or tune again");
  }
  if (!text) return text;
  if (DigestOf(*text) != digest->second) {
    return Invalid("has been changed since the artifact was written, so its evidence does not hold",
                   (folder / file).string(), "restore the file, or tune again");
  }
  return text;
}

Result<Artifact> LoadArtifact(const Path& folder) {
  const Path manifest = folder / kManifest;
  auto text = ReadFile(manifest, kMaxManifestBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "is no artifact: it has no manifest.json", folder.string(),
                "name the folder that `atunner optimize` printed");
  }
  if (!text) return std::unexpected(text.error());
  ATUNNER_TRY(Artifact artifact, ParseArtifactManifest(*text, manifest.string()));
  for (const std::string_view file : kArtifactKernelFiles) {
    ATUNNER_TRY([[maybe_unused]] const std::string checked,
                ReadArtifactFile(folder, artifact, file));
  }
  return artifact;
}

}  // namespace atunner
