#include "atunner/verify/executed_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/model/kernel/tensor_totals.h"
#include "atunner/verify/verifier_session.h"

namespace atunner {
namespace {

/// Warp instructions of the judge's own kernels per element of a tensor: drawing, poison,
/// fingerprints, comparison.
constexpr double kJudgeWork = 4;
/// At the task's own size results are compared with bounds so many times those of the check sizes:
/// precision is judged there, and sums grow with the size.
constexpr double kOwnSizeFactor = 4;
/// Bound on an element where sums cancel: another order of summation is that far away.
constexpr double kCancelled = 0.02;
constexpr double kElementOverNorm = 16;  ///< as in DefaultBudget

/// The largest bound on an element among the checks that passed on normal inputs.
double LargestBound(const Verdict& verdict) {
  double norm = 0;
  for (const CheckRecord& record : verdict.checks) {
    if (record.check == "oracle" && record.family == Name(InputFamily::kNormal))
      norm = std::max(norm, record.bound);
  }
  return kOwnSizeFactor * kElementOverNorm * norm;
}

std::string SizesOf(const std::vector<Dims>& sizes) {
  std::string text;
  for (const Dims& dims : sizes) text += (text.empty() ? "" : "; ") + TextOf(dims);
  return text;
}

}  // namespace

void LimitWork(const Device& device, double seconds, LaunchOptions& options) {
  constexpr double kPatience = 60;
  const bool is_virtual = device.evidence() == Evidence::kPredicted;
  options.timeout_seconds = is_virtual ? kPatience * seconds : seconds;
  if (is_virtual) options.max_warp_instructions = static_cast<uint64_t>(seconds * kWorkPerSecond);
}

void LimitToFirst(uint64_t most_work, LaunchOptions& options) {
  constexpr uint64_t kFactor = 100, kLeast = 20'000'000;  // a second or two
  if (most_work == 0 || options.max_warp_instructions == 0) return;
  options.max_warp_instructions = std::min(options.max_warp_instructions,
                                           std::max(kLeast, kFactor * most_work));
}

std::vector<Dims> Verifier::SizesFor(const CandidateKernel& candidate) const {
  std::vector<Dims> sizes = candidate.check_dims;
  // The virtual GPU cannot run a full problem on all inputs in useful time when there is a small
  // one that the same binary serves.
  constexpr double kSmallElements = 1 << 17;
  const bool small = spec_.oracle.kind == Oracle::Kind::kKernel &&
                     TotalsOf(spec_, spec_.dims).elements <= kSmallElements;
  const bool too_slow = device_.evidence() == Evidence::kPredicted && !sizes.empty() && !small;
  if (options_.full_size && !too_slow && std::ranges::find(sizes, spec_.dims) == sizes.end())
    sizes.push_back(spec_.dims);
  if (sizes.empty()) sizes.push_back(spec_.dims);
  return sizes;
}

std::optional<std::string> Verifier::TooLargeToExecute(const CandidateKernel& candidate) const {
  // A user's kernel is its own reference; a sample of its blocks is enough.
  if (device_.evidence() != Evidence::kPredicted || spec_.oracle.kind == Oracle::Kind::kKernel)
    return std::nullopt;
  if (!candidate.check_dims.empty() || oracle_->UseCpu(spec_.dims)) return std::nullopt;
  return "the task is too large to be executed on the virtual GPU, and this kernel is right at no "
         "smaller size";
}

Result<OwnSizeCheck*> Verifier::OwnSize() {
  if (!own_size_) {
    ATUNNER_TRY(own_size_,
                OwnSizeCheck::Make({device_, compiler_, *kernels_, spec_}, options_.work));
  }
  return own_size_.get();
}

Result<bool> Verifier::IsOwnSizeInPart(const CandidateKernel& candidate) {
  if (device_.evidence() != Evidence::kPredicted || spec_.oracle.kind != Oracle::Kind::kKernel ||
      !options_.full_size)
    return false;
  const std::vector<Dims> sizes = SizesFor(candidate);
  if (std::ranges::find(sizes, spec_.dims) == sizes.end()) return true;
  const double judging = kJudgeWork * TotalsOf(spec_, spec_.dims).elements;
  if (judging > options_.work.compare_all) return true;
  const std::vector<Case> cases = PlanCases(spec_, sizes, options_.seed);
  const auto first = std::ranges::find(cases, spec_.dims, &Case::dims);
  ATUNNER_TRY(OwnSizeCheck * own_size, OwnSize());
  ATUNNER_TRY(const double work, own_size->WorkOfKernelAsGiven(first->instance));
  return work + judging > options_.work.compare_all;
}

Result<bool> Verifier::IsValidSize(Session& session, const Case& one) {
  if (one.dims == spec_.dims || device_.evidence() != Evidence::kPredicted ||
      spec_.oracle.kind != Oracle::Kind::kKernel)
    return true;
  const auto known = valid_sizes_.find(one.dims);
  if (known != valid_sizes_.end()) return known->second;
  ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
  const auto reference = ReferenceOf(session, *buffers, one);
  if (!reference && reference.error().code != ErrorCode::kInvalidInput)
    return std::unexpected(reference.error());
  if (reference && *reference == nullptr) return true;  // optional inputs say nothing of the size
  return valid_sizes_[one.dims] = reference.has_value();
}

Result<std::vector<Case>> Verifier::CasesFor(Session& session, double ends) {
  std::vector<Case> cases = PlannedCases(session.candidate);
  if (std::isfinite(ends)) return cases;
  ATUNNER_TRY(session.in_part, IsOwnSizeInPart(session.candidate));
  if (session.in_part && std::ranges::find(cases, spec_.dims, &Case::dims) == cases.end())
    cases.push_back({spec_.dims, {InputFamily::kNormal, Mix64(options_.seed ^ 0x51), false}});
  return cases;
}

Result<bool> Verifier::RunAtOwnSize(Session& session, const Case& one) {
  // Where NaN and overflow may spread is not known without a reference in float64.
  const InputFamily family = one.instance.family;
  if (family == InputFamily::kNan || family == InputFamily::kLargeLogits) return true;
  // The kernel as given is right by definition: one sample shows that it runs.
  const bool baseline = session.level == VerifyLevel::kBaseline;
  if (baseline && (session.own_size || !session.candidate.check_dims.empty())) return true;
  const Effort effort = baseline || session.own_size           ? Effort::kSample
                        : session.level == VerifyLevel::kFinal ? Effort::kFinal
                                                               : Effort::kScreening;
  ATUNNER_TRY(OwnSizeCheck * own_size, OwnSize());
  ATUNNER_TRY(const OwnSizeFindings findings,
              own_size->Run(*session.module, session.candidate.plan, one.instance, effort,
                            std::max(LargestBound(session.verdict),
                                     family == InputFamily::kCancelling ? kCancelled : 0.0),
                            hazards_));
  const bool right = findings.kind == VerdictKind::kCorrect ||
                     findings.kind == VerdictKind::kSampled;
  if (!session.own_size || findings.coverage.compared > session.own_size->coverage.compared)
    session.own_size = findings;
  own_size_passed_ |= right;
  // Where nothing has passed yet, the kernel as given itself may be what does not run.
  if (!right && !own_size_passed_) {
    ATUNNER_TRY(const double work, own_size->WorkOfKernelAsGiven(one.instance));
    if (work >= 1e300)
      return Invalid("the kernel as given does not run: " + findings.reason, spec_.name,
                     "check its launch, argument sizes and problem size");
  }
  if (!right) return session.Record("own size", one, findings.kind, findings.reason);
  const bool compared = findings.coverage.compared > 0;
  session.Record(
      compared ? "oracle" : "own size", one, VerdictKind::kCorrect,
      findings.reason.empty() ? "all blocks against the kernel as given" : findings.reason);
  session.verdict.checks.back().error = findings.error;
  session.verdict.checks.back().bound = findings.bound;
  return true;
}

void Verifier::StateCoverage(Session& session) const {
  Verdict& verdict = session.verdict;
  const bool elsewhere_only = device_.evidence() == Evidence::kPredicted && !session.in_part &&
                              !session.HasOracleCheck(spec_.dims);
  if (elsewhere_only) verdict.coverage = {0, 0};
  if (!session.own_size) return;
  verdict.coverage = session.own_size->coverage;
  if (session.own_size->kind != VerdictKind::kSampled || session.level == VerifyLevel::kBaseline)
    return;
  std::vector<Dims> smaller = session.candidate.check_dims;
  std::erase_if(smaller, [&](const Dims& dims) { return !session.HasOracleCheck(dims); });
  const bool elsewhere = !smaller.empty();
  const bool nothing = !elsewhere && verdict.coverage.compared <= 0;
  verdict.kind = nothing ? VerdictKind::kUnchecked : VerdictKind::kSampled;
  verdict.reason = session.own_size->reason;
  if (elsewhere) verdict.reason += "; all of them at smaller sizes (" + SizesOf(smaller) + ")";
}

}  // namespace atunner
