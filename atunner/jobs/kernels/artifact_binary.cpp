#include "atunner/jobs/kernels/artifact_binary.h"

#include <algorithm>
#include <optional>
#include <utility>

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

/// The kernels as PTX names them.
std::vector<std::string> SymbolsOf(const Artifact& artifact) {
  std::vector<std::string> symbols;
  for (const KernelResources& kernel : artifact.resources)
    symbols.push_back(kernel.mangled.empty() ? kernel.entry : kernel.mangled);
  return symbols;
}

/// Compiles a text as the artifact's compiler did.
Result<CompileOutcome> Rebuild(std::string name, std::string text, Language language,
                               const Artifact& artifact, Compiler& compiler) {
  SourceUnit source;
  source.name = std::move(name);
  source.text = std::move(text);
  source.language = language;
  std::vector<std::string> entries = EntriesOf(artifact.plan);
  if (language == Language::kPtx) entries = SymbolsOf(artifact);
  return compiler.Compile({std::move(source), std::move(entries), artifact.arch});
}

std::string DifferenceText(const std::string& stored, const std::string& made) {
  const auto differs = Difference(stored, made);
  if (!differs) return differs.error().ToString();
  return differs->empty() ? "" : "differ in " + *differs;
}

BinaryComparison Foreign(const std::string& difference) {
  return {Kind::kForeign,
          "kernel.cubin, which a GPU runs, is not what kernel.ptx assembles to: "
          "they " +
              difference};
}

/// Where the same compiler makes kernel.ptx of kernel.cu again, it makes the cubin again, too.
/// nullopt if it does not: options of a user's kernel are not part of the artifact.
Result<std::optional<BinaryComparison>> CompareWithSource(const std::string& cuda,
                                                          const std::string& ptx,
                                                          const std::string& cubin,
                                                          const Artifact& artifact,
                                                          Compiler& compiler) {
  if (cuda.empty() || artifact.compiler != compiler.Version()) return std::nullopt;
  ATUNNER_TRY(const CompileOutcome outcome,
              Rebuild("kernel.cu", cuda, Language::kCudaCpp, artifact, compiler));
  if (!outcome.ok() || outcome.module->ptx != ptx) return std::nullopt;
  const std::string difference = DifferenceText(cubin, outcome.module->cubin);
  return difference.empty() ? BinaryComparison{} : Foreign(difference);
}

}  // namespace

Result<BinaryComparison> CompareBinaries(const Path& folder, const Artifact& artifact,
                                         Compiler& compiler) {
  ATUNNER_TRY(const std::string cubin, ReadArtifactFile(folder, artifact, "kernel.cubin"));
  ATUNNER_TRY(std::string ptx, ReadArtifactFile(folder, artifact, "kernel.ptx"));
  if (cubin.empty() || ptx.empty()) return BinaryComparison{};
  ATUNNER_TRY(const std::string cuda, ReadArtifactFile(folder, artifact, "kernel.cu"));
  ATUNNER_TRY(const auto by_source, CompareWithSource(cuda, ptx, cubin, artifact, compiler));
  if (by_source) return *by_source;
  ATUNNER_TRY(const CompileOutcome outcome,
              Rebuild("kernel.ptx", std::move(ptx), Language::kPtx, artifact, compiler));
  if (!outcome.ok())
    return BinaryComparison{Kind::kUnknown,
                            "whether kernel.cubin is the program of kernel.ptx is "
                            "not known, which does not assemble here: " +
                                outcome.error};
  const std::string difference = DifferenceText(cubin, outcome.module->cubin);
  if (difference.empty()) return BinaryComparison{};
  // The assembler links: it places variables of the module otherwise than NVRTC.
  const bool other_route = !cuda.empty() || artifact.compiler != compiler.Version() ||
                           LimitsRegisters(artifact);
  if (!other_route) return Foreign(difference);
  return BinaryComparison{Kind::kUnknown,
                          "whether kernel.cubin, which a GPU runs, is the program of kernel.ptx "
                          "is not known: made by " +
                              artifact.compiler + ", assembled by " + compiler.Version() +
                              ", they " + difference};
}

}  // namespace atunner::jobs
