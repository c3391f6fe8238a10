#include "atunner/tune/virtual_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>

#include "atunner/model/kernel/tensor_totals.h"

namespace atunner {
namespace {

/// Time limit of all examinations together: the user waits for the end of the run.
constexpr double kLimitSeconds = 10;
/// Time limit of one examination for inputs beyond the first of each size: a slow kernel is
/// examined with few inputs rather than not at all.
constexpr double kInputsSeconds = 4;

/// Time limit of a launch: the end of the run waits for the kernel to beat, which is examined in
/// the background.
constexpr double kLaunchSeconds = 8;

/// A task of so many bytes is executed there at its own size.
constexpr double kSmallBytes = 4 << 20;

/// A hazard, which a real GPU need not show.
bool IsHazard(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kOutOfBounds || verdict.kind == VerdictKind::kRace ||
         verdict.kind == VerdictKind::kDeadlock;
}

/// Wrong on inputs that a real GPU does not get: indices beyond their arrays, which may end it.
bool IsWrong(const Verdict& verdict) {
  using enum VerdictKind;
  constexpr VerdictKind kWrong[] = {kWrongResult, kLowPrecision, kNotWritten,      kStaleResult,
                                    kNonFinite,   kMutatedInput, kNondeterministic};
  return std::ranges::find(kWrong, verdict.kind) != std::end(kWrong);
}

/// True for reads of memory that nothing has written. The verdict does not tell them from other
/// races, so that the name of the hazard must.
bool ReadsUnwritten(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kRace &&
         verdict.reason.find(": uninitialised ") != std::string::npos;
}

std::string Why(const Verdict& verdict) {
  return fmt::format("{}: {}", Name(verdict.kind), verdict.reason);
}

}  // namespace

void VirtualCheck::Begin(const KernelSpec& spec, uint64_t seed,
                         const std::optional<CandidateKernel>& plain) {
  if (judge_ == nullptr) return;
  seed_ = seed;
  users_ = spec.oracle.kind == Oracle::Kind::kKernel;
  small_ = TotalsOf(spec, spec.dims).bytes <= kSmallBytes;
  preparation_ = std::async(std::launch::async,
                            [this, spec, plain] { return Prepare(spec, plain); });
}

std::string VirtualCheck::Prepare(const KernelSpec& spec,
                                  const std::optional<CandidateKernel>& plain) {
  if (const Status begun = judge_->Begin({spec, seed_, kLaunchSeconds}); !begun)
    return begun.error().ToString();
  if (!plain) return "";
  Verdict verdict;
  Decide(*plain, verdict);
  plain_reads_unwritten_ = ReadsUnwritten(verdict);
  if (plain_reads_unwritten_) return "";
  return verdict.passed() ? "" : "the kernel to beat does not pass there either: " + verdict.reason;
}

void VirtualCheck::AwaitPreparation() {
  if (!preparation_.valid()) return;
  const double start = clock_.Now();
  const auto limit = std::chrono::duration<double>(kLimitSeconds - spent_);
  if (preparation_.wait_for(limit) == std::future_status::ready) obstacle_ = preparation_.get();
  spent_ += clock_.Now() - start;
}

std::string VirtualCheck::Examine(const CandidateKernel& candidate, Verdict& verdict) {
  if (judge_ == nullptr) return "";
  AwaitPreparation();
  if (preparation_.valid()) return "the kernel to beat is still being examined there";
  if (!obstacle_.empty()) return obstacle_;
  if (spent_ > kLimitSeconds) return "others took all the time there is for that";
  const double start = clock_.Now();
  std::string undecided = Decide(candidate, verdict);
  spent_ += clock_.Now() - start;
  return undecided;
}

std::string VirtualCheck::Decide(const CandidateKernel& candidate, Verdict& verdict) {
  if (candidate.check_dims.empty() && !small_)
    return "there is no smaller size at which the same kernel is valid";
  const auto answer = judge_->Examine(
      candidate,
      {.time = false, .incumbent_ns = {}, .seed = seed_, .time_limit_seconds = kInputsSeconds});
  if (!answer) return answer.error().ToString();
  if (plain_reads_unwritten_ && ReadsUnwritten(answer->verdict))
    return "the kernel to beat reads unwritten memory there, too: " + answer->verdict.reason;
  const bool wrong = users_ && !plain_reads_unwritten_ && IsWrong(answer->verdict);
  if (wrong || IsHazard(answer->verdict)) {
    verdict.kind = answer->verdict.kind;
    verdict.reason = "on the virtual GPU: " + answer->verdict.reason;
  } else if (!answer->verdict.passed()) {
    return Why(answer->verdict);
  }
  for (CheckRecord record : answer->verdict.checks) {
    record.check = "virtual GPU, " + record.check;
    verdict.checks.push_back(std::move(record));
  }
  return "";
}

}  // namespace atunner
