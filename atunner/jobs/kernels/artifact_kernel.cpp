#include "atunner/jobs/kernels/artifact_kernel.h"

#include "atunner/codegen/template/family.h"

namespace atunner::jobs {
namespace {

/// The binaries as they are stored: they were made for this architecture.
Result<CompiledModule> StoredModule(const Path& folder, const Artifact& artifact) {
  CompiledModule module;
  module.arch = artifact.arch;
  module.compiler = artifact.compiler;
  module.kernels = artifact.resources;
  ATUNNER_TRY(module.ptx, ReadArtifactFile(folder, artifact, "kernel.ptx"));
  ATUNNER_TRY(module.cubin, ReadArtifactFile(folder, artifact, "kernel.cubin"));
  return module;
}

/// The artifact's PTX for another architecture.
Result<CompiledModule> AssembledModule(const Path& folder, const Artifact& artifact,
                                       const Target& target, Compiler& compiler) {
  SourceUnit source;
  ATUNNER_TRY(source.text, ReadArtifactFile(folder, artifact, "kernel.ptx"));
  source.name = "kernel.ptx";
  source.language = Language::kPtx;
  ATUNNER_TRY(CompileOutcome outcome,
              compiler.Compile({source, EntriesOf(artifact.plan), target.profile.Arch()}));
  if (!outcome.ok())
    return Invalid(
        "the artifact's PTX does not assemble for " + target.profile.name + ": " + outcome.error,
        folder.string());
  return *std::move(outcome.module);
}

/// The sizes at which the family that made the artifact would check this configuration.
std::vector<Dims> CheckDimsOf(const Artifact& artifact, const DeviceProfile& profile) {
  if (artifact.spec.oracle.kind == Oracle::Kind::kKernel) return {};
  const auto schedule = MakeTemplate(artifact.spec, profile);
  if (!schedule) return {};
  Configuration configuration;
  for (const auto& [name, value] : artifact.configuration) configuration.values.push_back(value);
  if (configuration.values.size() != (*schedule)->space().parameters.size()) return {};
  return (*schedule)->CheckDims(configuration);
}

}  // namespace

Result<CandidateKernel> CandidateOf(const Path& folder, const Artifact& artifact,
                                    const Target& target, Compiler& compiler) {
  CandidateKernel candidate;
  candidate.plan = artifact.plan;
  if (target.profile.Arch() == artifact.arch) {
    ATUNNER_TRY(candidate.module, StoredModule(folder, artifact));
  } else {
    ATUNNER_TRY(candidate.module, AssembledModule(folder, artifact, target, compiler));
  }
  candidate.check_dims = CheckDimsOf(artifact, target.profile);
  return candidate;
}

}  // namespace atunner::jobs
