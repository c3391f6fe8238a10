// Hazards that a user's kernel has as given. E.g. a reduction of a warp without __syncwarp() is
// right on the GPUs that it was written for, and so are its candidates, which are that kernel with
// other parameters.
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/verify/launch/judge_kernels.h"
#include "atunner/verify/verifier_session.h"

namespace atunner {
namespace {

constexpr auto kInit = static_cast<uint8_t>(HazardGroup::kInit);
constexpr auto kRace = static_cast<uint8_t>(HazardGroup::kRace);

bool IsHazard(const VerifyAnswer& answer) {
  const auto* verdict = std::get_if<Verdict>(&answer);
  return verdict != nullptr && verdict->kind == VerdictKind::kRace;
}

/// nullptr if it does not compile, of which the oracle tells.
Result<std::shared_ptr<const CandidateKernel>> KernelAsGiven(const Device& device,
                                                             Compiler& compiler,
                                                             const RenderedKernel& kernel,
                                                             const std::vector<Dims>& check_dims) {
  ATUNNER_TRY(CompileOutcome outcome,
              compiler.Compile({kernel.source, EntriesOf(kernel.plan), ArchitectureFor(device)}));
  if (!outcome.ok()) return nullptr;
  return std::make_shared<const CandidateKernel>(
      CandidateKernel{*std::move(outcome.module), kernel.plan, check_dims});
}

}  // namespace

Result<VerifyAnswer> Verifier::Verify(std::shared_ptr<const CandidateKernel> candidate,
                                      VerifyLevel level, std::optional<double> time_limit_seconds) {
  ATUNNER_TRY(VerifyAnswer answer, VerifyOnce(candidate, level, time_limit_seconds));
  const bool users = spec_.oracle.kind == Oracle::Kind::kKernel && spec_.oracle.kernel;
  if (!users || !IsHazard(answer) || std::exchange(given_examined_, true)) return answer;
  ATUNNER_TRY(const auto given,
              KernelAsGiven(device_, compiler_, *spec_.oracle.kernel, candidate->check_dims));
  if (given == nullptr) return answer;
  for (const int tolerated : {0, kInit + 0, kRace + 0, kInit | kRace}) {
    hazards_ = static_cast<uint8_t>(kAllHazards & ~tolerated);
    ATUNNER_TRY(const VerifyAnswer as_given,
                VerifyOnce(given, VerifyLevel::kBaseline, time_limit_seconds));
    if (IsHazard(as_given)) continue;
    return tolerated == 0 ? std::move(answer)
                          : VerifyOnce(std::move(candidate), level, time_limit_seconds);
  }
  hazards_ = kAllHazards;  // it has others, which end a program
  return answer;
}

}  // namespace atunner
