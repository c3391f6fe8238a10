// An artifact: a folder with a kernel's source and binaries, its launch plan, and the evidence that
// it is correct and fast. The format is described in docs/formats/artifact.md.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/kernel/compiled_module.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/kernel/valid_sizes.h"
#include "atunner/model/trial/trial.h"

namespace atunner {

/// The newest format this program reads and the one it writes.
constexpr int kArtifactFormat = 1;

struct Artifact {
  std::string name;  ///< of the task: "softmax"
  KernelSpec spec;
  std::vector<std::pair<std::string, Value>> configuration;  ///< parameters and their values
  LaunchPlan plan;
  ValidSizes valid_sizes;  ///< the problem sizes that the binary may be launched for

  std::string arch;      ///< what the binaries were compiled for: "sm_90a"
  std::string compiler;  ///< "NVRTC 13.0"
  std::vector<KernelResources> resources;

  Evidence evidence = Evidence::kPredicted;
  std::string device;  ///< "NVIDIA H200"
  int cc_major = 0;
  int cc_minor = 0;
  Trial trial;  ///< verdict with its checks, measurement or estimate
  std::vector<Baseline> baselines;

  std::string created;          ///< "2026-11-21T01:12:03Z"
  std::string atunner_version;  ///< of the program that wrote it
  std::string run;              ///< id of the run in the store it came from
  /// Hashes of the kernel files in the folder. They detect damage; they are no signature.
  std::map<std::string, Digest, std::less<>> digests;
};

/// The folder's files beside manifest.json. Empty ones are not written.
struct ArtifactFiles {
  std::string source;  ///< kernel.cu
  std::string ptx;     ///< kernel.ptx
  std::string cubin;   ///< kernel.cubin
  std::string report_html;
  std::string report_markdown;
};

/// Files whose digests the manifest holds. Reports are for people, who may edit them.
constexpr std::array<std::string_view, 3> kArtifactKernelFiles = {"kernel.cu", "kernel.ptx",
                                                                  "kernel.cubin"};

/// Success when an artifact can be written to `folder`: there is nothing, or an empty folder, an
/// artifact or reports. Call it before a long run, whose result would otherwise be lost.
Status CheckArtifactFolder(const Path& folder);

/// Writes a complete sibling folder first and renames it to `folder`, so that readers never see
/// half of an artifact. Where that is impossible (the parent is read-only, the folder is a mount),
/// writes file by file with the manifest last, so that half of it is no artifact. Replaces an
/// earlier artifact; refuses a folder that holds anything else. `artifact.digests` is computed from
/// `files`.
Status SaveArtifact(const Path& folder, const Artifact& artifact, const ArtifactFiles& files);

/// Reads and checks a folder: format, consistency, digests of all files. kNotFound when it is no
/// artifact, kUnsupported when a newer atunner wrote it.
Result<Artifact> LoadArtifact(const Path& folder);

/// One of kArtifactKernelFiles, its digest checked. Empty when the artifact has none.
Result<std::string> ReadArtifactFile(const Path& folder, const Artifact& artifact,
                                     std::string_view file);

/// The manifest's text and back: what LoadArtifact and SaveArtifact use. `where` names the text in
/// messages.
std::string ArtifactManifest(const Artifact& artifact);
Result<Artifact> ParseArtifactManifest(std::string_view text, std::string_view where);

}  // namespace atunner
