#include "atunner/jobs/runs/verify.h"

#include <random>

#include "atunner/jobs/kernels/artifact_kernel.h"
#include "atunner/model/artifact/artifact.h"

namespace atunner::jobs {
namespace {

constexpr double kExamineSeconds = 300;
constexpr double kLaunchSeconds = 60;

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
  const auto judge = services.devices.MakeJudge(target, kExamineSeconds);
  const uint64_t seed = std::random_device{}();
  ATUNNER_RETURN_IF_ERROR(judge->Begin({artifact.spec, seed, kLaunchSeconds}));
  ATUNNER_TRY(const JudgeAnswer answer,
              judge->Examine(candidate,
                             {.time = true, .thorough = true, .incumbent_ns = {}, .seed = seed}));
  return VerifyResult{artifact.name, target.profile.name, target.evidence(),
                      seed,          answer.verdict,      TimeOf(answer)};
}

}  // namespace atunner::jobs
