#include "atunner/jobs/runs/verify.h"

#include <random>

#include "atunner/jobs/kernels/artifact_binary.h"
#include "atunner/jobs/kernels/artifact_kernel.h"
#include "atunner/jobs/requests/examine_limit.h"
#include "atunner/model/artifact/artifact.h"

namespace atunner::jobs {
namespace {

/// More than a search grants: nothing else is at hand if this kernel takes long.
constexpr double kVerifySeconds = 300;
constexpr double kLaunchSeconds = 60;

/// On the virtual GPU, which runs kernel.ptx: adds what is known of kernel.cubin to the verdict.
Status CompareBinary(const Path& folder, const Artifact& artifact, Compiler& compiler,
                     Verdict& verdict) {
  ATUNNER_TRY(const BinaryComparison found, CompareBinaries(folder, artifact, compiler));
  if (found.kind == BinaryComparison::Kind::kSame) return {};
  CheckRecord record{.check = "binary", .detail = found.detail};
  record.passed = found.kind == BinaryComparison::Kind::kUnknown;
  verdict.checks.push_back(std::move(record));
  if (found.kind == BinaryComparison::Kind::kForeign) verdict.kind = VerdictKind::kUnchecked;
  verdict.reason += (verdict.reason.empty() ? "" : "; ") + found.detail;
  return {};
}

/// The time of an answer, if its verdict stands.
std::optional<double> TimeOf(const JudgeAnswer& answer) {
  if (!answer.verdict.stands()) return std::nullopt;
  Trial trial;
  trial.measurement = answer.measurement;
  trial.estimate = answer.estimate;
  return trial.ObjectiveNs();
}

}  // namespace

Result<VerifyResult> Verify(const VerifyRequest& request, Services& services) {
  ATUNNER_TRY(Artifact artifact, LoadArtifact(request.folder));
  if (request.accuracy) SetAccuracy(artifact.spec, *request.accuracy);
  TargetChoice choice = request.target;
  if (choice.gpu.empty()) choice.gpu = artifact.device;
  ATUNNER_TRY(const Target target, services.devices.Choose(choice));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  ATUNNER_TRY(const CandidateKernel candidate,
              CandidateOf(request.folder, artifact, target, *compiler));
  const auto judge = services.devices.MakeJudge(target, ExamineSeconds(target, kVerifySeconds));
  const uint64_t seed = std::random_device{}();
  ATUNNER_RETURN_IF_ERROR(judge->Begin({artifact.spec, seed, kLaunchSeconds}));
  ATUNNER_TRY(JudgeAnswer answer,
              judge->Examine(candidate,
                             {.time = true, .thorough = true, .incumbent_ns = {}, .seed = seed}));
  if (target.evidence() == Evidence::kPredicted && answer.verdict.stands())
    ATUNNER_RETURN_IF_ERROR(CompareBinary(request.folder, artifact, *compiler, answer.verdict));
  return VerifyResult{artifact.name, target.profile.name, target.evidence(),
                      seed,          answer.verdict,      TimeOf(answer)};
}

}  // namespace atunner::jobs
