#include "atunner/tune/virtual_check.h"

#include <fmt/format.h>

namespace atunner {
namespace {

/// Of all examinations: the user waits for the end of a run.
constexpr double kPatienceSeconds = 10;

bool IsHazard(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kOutOfBounds || verdict.kind == VerdictKind::kRace;
}

std::string Why(const Verdict& verdict) { return fmt::format("{}: {}", Name(verdict.kind), verdict.reason); }

}  // namespace

void VirtualCheck::Begin(const KernelSpec& spec, uint64_t seed, const std::optional<CandidateKernel>& plain) {
  if (judge_ == nullptr) return;
  seed_ = seed;
  if (const Status begun = judge_->Begin({spec, seed, 20}); !begun) {
    obstacle_ = begun.error().ToString();
    return;
  }
  if (!plain) return;
  Verdict verdict;
  Examine(*plain, verdict);
  if (!verdict.correct()) obstacle_ = "the kernel to beat does not pass there either: " + verdict.reason;
}

std::string VirtualCheck::Examine(const CandidateKernel& candidate, Verdict& verdict) {
  if (judge_ == nullptr) return "";
  if (!obstacle_.empty()) return obstacle_;
  if (candidate.check_dims.empty()) return "there is no smaller size at which the same kernel is valid";
  if (spent_ > kPatienceSeconds) return "others took all the time there is for that";
  const double start = clock_.Now();
  const auto answer = judge_->Examine(candidate, {.time = false, .incumbent_ns = {}, .seed = seed_});
  spent_ += clock_.Now() - start;
  if (!answer) return answer.error().ToString();
  if (IsHazard(answer->verdict)) {
    verdict.kind = answer->verdict.kind;
    verdict.reason = "on the virtual GPU: " + answer->verdict.reason;
  } else if (!answer->verdict.correct()) {
    return Why(answer->verdict);
  }
  for (CheckRecord record : answer->verdict.checks) {
    record.check = "virtual GPU, " + record.check;
    verdict.checks.push_back(std::move(record));
  }
  return "";
}

}  // namespace atunner
