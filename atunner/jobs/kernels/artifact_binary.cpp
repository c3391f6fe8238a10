#include "atunner/jobs/kernels/artifact_binary.h"

#include <algorithm>

#include "atunner/compile/cubin.h"

namespace atunner::jobs {
namespace {

using Kind = BinaryComparison::Kind;

/// The first section in which two cubins differ; empty if they are the same program.
Result<std::string> Difference(const std::string& stored, const std::string& made) {
  ATUNNER_TRY(const auto has, CodeOfCubin(stored));
  ATUNNER_TRY(const auto wants, CodeOfCubin(made));
  for (const auto& [name, code] : wants) {
    const auto other = has.find(name);
    if (other == has.end() || other->second != code) return name;
  }
  for (const auto& [name, code] : has) {
    if (!wants.contains(name)) return name;
  }
  return std::string();
}

/// True if the source was compiled with a limit of registers, which PTX does not state.
bool LimitsRegisters(const Artifact& artifact) {
  return std::ranges::any_of(artifact.configuration, [](const auto& parameter) {
    return parameter.first == "max_registers" && Truthy(parameter.second);
  });
}

}  // namespace

Result<BinaryComparison> CompareBinaries(const Path& folder, const Artifact& artifact,
                                         Compiler& compiler) {
  ATUNNER_TRY(const std::string cubin, ReadArtifactFile(folder, artifact, "kernel.cubin"));
  SourceUnit source;
  ATUNNER_TRY(source.text, ReadArtifactFile(folder, artifact, "kernel.ptx"));
  if (cubin.empty() || source.text.empty()) return BinaryComparison{};
  source.name = "kernel.ptx";
  source.language = Language::kPtx;
  ATUNNER_TRY(const CompileOutcome outcome,
              compiler.Compile({source, EntriesOf(artifact.plan), artifact.arch}));
  if (!outcome.ok())
    return BinaryComparison{Kind::kUnknown,
                            "whether kernel.cubin is the program of kernel.ptx is "
                            "not known, which does not assemble here: " +
                                outcome.error};
  const auto differs = Difference(cubin, outcome.module->cubin);
  if (differs && differs->empty()) return BinaryComparison{};
  const std::string what = differs ? "differ in " + *differs : differs.error().ToString();
  if (artifact.compiler != compiler.Version() || LimitsRegisters(artifact))
    return BinaryComparison{Kind::kUnknown,
                            "whether kernel.cubin, which a GPU runs, is the program of kernel.ptx "
                            "is not known: made by " +
                                artifact.compiler + ", assembled by " + compiler.Version() +
                                ", they " + what};
  return BinaryComparison{Kind::kForeign,
                          "kernel.cubin, which a GPU runs, is not what kernel.ptx assembles to: "
                          "they " +
                              what};
}

}  // namespace atunner::jobs
