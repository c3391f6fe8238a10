#include "atunner/verify/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/verify/executed_share.h"
#include "atunner/verify/outcome_verdict.h"
#include "atunner/verify/stated_tolerance.h"
#include "atunner/verify/verifier_session.h"

namespace atunner {
namespace {

/// Compares an output with its budget. With NaN inputs we require only that NaNs are not lost and
/// that finite elements stay correct: which further elements become NaN, and where a sort puts a
/// NaN, may differ between correct kernels.
OutputJudgement JudgeUnder(const InputInstance& instance, const Reference::Output& output,
                           CompareStats stats) {
  if (instance.family == InputFamily::kNan) {
    if (!IsFloat(output.dtype)) return {};
    stats.new_nonfinite = 0;
  }
  return JudgeOutput(output.name, stats, output.budget, false);
}

/// Registers that a block takes: the driver counts as if its warps filled the partitions of the
/// register file evenly, 256 registers at a time.
uint64_t RegistersPerBlock(const DeviceProfile& profile, const KernelResources& resources,
                           uint64_t threads) {
  const uint64_t per_warp = (uint64_t{resources.registers} * 32 + 255) / 256 * 256;
  const auto partitions = static_cast<uint64_t>(std::max(1, profile.schedulers_per_sm));
  const uint64_t warps = (threads + 31) / 32;
  return per_warp * ((warps + partitions - 1) / partitions * partitions);
}

/// Why one launch does not fit the device; nullopt if it fits.
std::optional<std::string> StepObstacle(const DeviceProfile& profile, const ConcreteStep& step,
                                        const KernelResources& resources) {
  const uint64_t threads = step.block.Count();
  const uint64_t shared = uint64_t{resources.static_shared_bytes} + step.shared_bytes;
  if (shared > static_cast<uint64_t>(profile.shared_per_block)) {
    return fmt::format("{} needs {} bytes of shared memory per block, {} has {}", step.entry,
                       shared, profile.name, profile.shared_per_block);
  }
  if (threads > resources.max_threads) {
    return fmt::format(
        "{} can run at most {} threads per block ({} registers each), {} are asked for", step.entry,
        resources.max_threads, resources.registers, threads);
  }
  const uint64_t registers = RegistersPerBlock(profile, resources, threads);
  if (profile.registers_per_sm > 0 && registers > static_cast<uint64_t>(profile.registers_per_sm)) {
    return fmt::format("{} needs {} registers per block, an SM has {}", step.entry, registers,
                       profile.registers_per_sm);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> ResourceObstacle(const DeviceProfile& profile,
                                            const CandidateKernel& candidate,
                                            const KernelSpec& spec) {
  const auto plan = Resolve(candidate.plan, spec.dims, spec.attributes);
  if (!plan) return plan.error().ToString();
  for (const ConcreteStep& step : plan->steps) {
    const KernelResources* resources = candidate.module.Find(step.entry);
    if (resources == nullptr) return "the module has no kernel '" + step.entry + "'";
    if (auto obstacle = StepObstacle(profile, step, *resources)) return obstacle;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Verifier>> Verifier::Make(Device& device, Compiler& compiler,
                                                 KernelSpec spec, VerifyOptions options) {
  std::unique_ptr<Verifier> verifier(new Verifier(device, compiler, std::move(spec), options));
  ATUNNER_TRY(verifier->kernels_, JudgeKernels::Make(device, compiler));
  ATUNNER_TRY(verifier->oracle_,
              OracleStore::Make(device, compiler, *verifier->kernels_, verifier->spec_));
  return verifier;
}

Result<const TaskBuffers*> Verifier::BuffersAt(const Dims& dims, uint32_t slot) {
  std::unique_ptr<TaskBuffers>& buffers = buffers_[{dims, slot}];
  if (!buffers) {
    ATUNNER_TRY(TaskBuffers made, TaskBuffers::Allocate(device_, spec_, dims, slot));
    buffers = std::make_unique<TaskBuffers>(std::move(made));
  }
  return buffers.get();
}

Result<std::variant<VerifiedKernel, Verdict>> Verifier::Verify(
    std::shared_ptr<const CandidateKernel> candidate, VerifyLevel level,
    std::optional<double> time_limit_seconds) {
  const double ends = time_limit_seconds ? SystemClock().Now() + *time_limit_seconds
                                         : std::numeric_limits<double>::infinity();
  Session session{
      .candidate = *candidate, .module = nullptr, .level = level, .verdict = {}, .skipped = {}};
  if (!Prepare(session)) return session.verdict;
  ATUNNER_RETURN_IF_ERROR(CheckTolerance(*candidate));
  ATUNNER_TRY(bool passed, RunCases(session, level, ends));
  if (!passed) return session.verdict;
  const std::vector<Dims> sizes = SizesFor(*candidate);
  const bool last_size_proven = session.HasOracleCheck(sizes.back());
  ATUNNER_TRY(passed, RunSkippedCases(session));
  if (!passed) return session.verdict;
  StateCoverage(session);
  if (!session.verdict.passed()) return session.verdict;
  if (const auto reason = session.WhyInconclusive(sizes, last_size_proven)) {
    session.verdict.kind = VerdictKind::kInconclusive;
    session.verdict.reason = *reason;
    return session.verdict;
  }
  return VerifiedKernel(std::move(candidate), std::move(session.module),
                        std::move(session.verdict));
}

/// Once, for the largest size: a tolerance that the task states must tell results from trivial
/// ones.
Status Verifier::CheckTolerance(const CandidateKernel& candidate) {
  if (!StatesTolerance(spec_) || std::exchange(tolerance_checked_, true)) return {};
  const std::vector<Case> cases = PlanCases(spec_, SizesFor(candidate), options_.seed);
  if (cases.back().dims == spec_.dims) {
    ATUNNER_TRY(const bool in_part, IsOwnSizeInPart(candidate));
    if (in_part) return {};  // a reference of every element would take too long
  }
  ToleranceTest test;
  for (const Case& one : cases) {
    if (test.passed()) break;
    if (one.dims != cases.back().dims) continue;
    ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
    ATUNNER_TRY(const Reference* reference, ReferenceOf(*buffers, one));
    test.Add(*reference);
  }
  return test.Check(spec_);
}

/// Loads the candidate. False if it cannot be checked, with the verdict set.
bool Verifier::Prepare(Session& session) const {
  const auto refuse = [&](VerdictKind kind, std::string reason) {
    session.verdict.kind = kind;
    session.verdict.reason = std::move(reason);
    return false;
  };
  if (auto obstacle = ResourceObstacle(device_.profile(), session.candidate, spec_))
    return refuse(VerdictKind::kResourceLimit, *obstacle);
  auto module = device_.Load(session.candidate.module);
  if (!module) {
    const bool lacks = module.error().code == ErrorCode::kUnsupported;
    return refuse(lacks ? VerdictKind::kUnsupported : VerdictKind::kLaunchFailure,
                  module.error().ToString());
  }
  session.module = std::move(*module);
  if (auto obstacle = TooLargeToExecute(session.candidate))
    return refuse(VerdictKind::kUnchecked, *obstacle);
  return true;
}

/// Runs the planned cases. `ends`: SystemClock time after which a size that has an oracle check
/// gets no further ones.
Result<bool> Verifier::RunCases(Session& session, VerifyLevel level, double ends) {
  ATUNNER_TRY(const std::vector<Case> cases, CasesFor(session, ends));
  for (Case one : cases) {
    const bool baseline = level == VerifyLevel::kBaseline;
    one.repeat = one.repeat && !baseline;
    const bool late = SystemClock().Now() > ends;
    if (late && session.HasOracleCheck(one.dims)) continue;
    if (baseline && session.HasOracleCheck(one.dims) &&
        !(session.in_part && one.dims == spec_.dims)) {
      // Computed now, so that later candidates need not wait for the reference.
      ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
      ATUNNER_RETURN_IF_ERROR(ReferenceOf(*buffers, one));
      continue;
    }
    ATUNNER_TRY(const bool passed, RunCase(session, one));
    if (!passed) return false;
  }
  return true;
}

/// Runs the skipped cases of sizes on which no instance tells a right kernel from a constant (e.g.
/// a softmax of rows of one element). A right answer shows little there, but a wrong one is still
/// wrong.
Result<bool> Verifier::RunSkippedCases(Session& session) {
  session.run_skipped = true;
  const auto checked = [&](const Case& one) { return session.HasOracleCheck(one.dims); };
  std::erase_if(session.skipped, checked);
  for (const Case& one : std::exchange(session.skipped, {})) {
    ATUNNER_TRY(const bool passed, RunCase(session, one));
    if (!passed) return false;
  }
  return true;
}

Result<bool> Verifier::RunCase(Session& session, const Case& one) {
  if (session.in_part && one.dims == spec_.dims) return RunAtOwnSize(session, one);
  ATUNNER_TRY(const bool valid, IsValidSize(one));
  if (!valid) return true;
  ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
  ATUNNER_TRY(const Reference* reference, ReferenceOf(*buffers, one));
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(*kernels_, one.instance));
  if (reference->overflows()) return true;
  if (!reference->discriminates() && !reference->reevaluated && !session.run_skipped) {
    session.skipped.push_back(one);
    return true;
  }
  auto plan = BindPlan(device_, session.candidate.plan, spec_, *buffers);
  if (!plan)
    return session.Record("launch", one, VerdictKind::kLaunchFailure, plan.error().ToString());
  return Examine(session, one, *buffers, *reference, *plan);
}

Result<bool> Verifier::Examine(Session& session, const Case& one, const TaskBuffers& buffers,
                               const Reference& reference, const BoundPlan& plan) {
  // Equal instances have equal inputs, so that their fingerprints are computed once.
  std::vector<uint64_t>& before = input_prints_[{one.dims, one.instance}];
  if (before.empty()) {
    ATUNNER_TRY(before, FingerprintWhere(buffers, false));
  }
  ATUNNER_RETURN_IF_ERROR(buffers.ArmGuards());
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  if (const Status copied = CopySymbols(device_, *session.module, plan); !copied)
    return session.Record("launch", one, VerdictKind::kLaunchFailure, copied.error().ToString());
  ATUNNER_TRY(bool passed, CheckLaunchAndState(session, one, buffers, plan));
  if (!passed) return false;
  ATUNNER_TRY(passed, CheckInputs(session, one, buffers, before));
  if (!passed) return false;
  ATUNNER_TRY(passed, CheckOutputs(session, one, buffers, reference));
  return passed && one.repeat ? CheckRepeat(session, one, buffers, plan) : Result<bool>(passed);
}

Result<bool> Verifier::CheckLaunchAndState(Session& session, const Case& one,
                                           const TaskBuffers& buffers, const BoundPlan& plan) {
  ATUNNER_TRY(const auto state_before, device_.StateFingerprint(*session.module));
  ATUNNER_TRY(const bool passed, CheckLaunch(session, one, buffers, plan));
  ATUNNER_TRY(const auto state_after, device_.StateFingerprint(*session.module));
  if (!passed || state_before == state_after) return passed;
  return session.Record("state", one, VerdictKind::kStaleResult,
                        "leaves its module's global variables changed: a later launch could replay "
                        "an earlier result");
}

/// The reference of a case. If it is not known yet, inputs are drawn to compute it; callers draw
/// them again, since a reference kernel may write its in-out tensors.
Result<const Reference*> Verifier::ReferenceOf(const TaskBuffers& buffers, const Case& one) {
  if (const Reference* known = oracle_->Find(buffers.dims(), one.instance)) return known;
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(*kernels_, one.instance));
  return oracle_->Get(buffers, one.instance);
}

Result<bool> Verifier::CheckLaunch(Session& session, const Case& one, const TaskBuffers& buffers,
                                   const BoundPlan& plan) {
  LaunchOptions options;
  LimitWork(device_, options_.launch_timeout_seconds, options);
  // A task that allows nondeterministic results allows the races behind them.
  options.check_global = !spec_.tolerance.allow_nondeterminism;
  ATUNNER_TRY(const LaunchOutcome outcome, RunPlan(device_, *session.module, plan, options));
  if (!outcome.completed()) {
    const auto [kind, text] = VerdictOf(outcome);
    return session.Record("run", one, kind, text);
  }
  ATUNNER_TRY(const auto broken, buffers.BrokenGuard(*kernels_));
  if (broken)
    return session.Record("guard zones", one, VerdictKind::kOutOfBounds,
                          "wrote outside " + *broken);
  return true;
}

Result<bool> Verifier::CheckInputs(Session& session, const Case& one, const TaskBuffers& buffers,
                                   const std::vector<uint64_t>& before) {
  ATUNNER_TRY(const std::vector<uint64_t> after, FingerprintWhere(buffers, false));
  size_t at = 0;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput) continue;
    if (before[at] != after[at]) {
      return session.Record("inputs", one, VerdictKind::kMutatedInput,
                            "the input '" + tensor.spec->name + "' was changed");
    }
    ++at;
  }
  return true;
}

Result<CompareStats> Verifier::CompareOutput(const TaskBuffers& buffers,
                                             const Reference::Output& output) {
  const TaskBuffers::Tensor* tensor = buffers.Find(output.name);
  CompareRequest request{tensor->address, output.dtype, output.masked->address(), output.elements,
                         output.key,      output.scale, output.budget.element};
  request.decisions = output.decision_slots;
  // Not for integers, of which the poison is a legitimate value, and not for in-out tensors, which
  // are not poisoned.
  request.poison_counts = tensor->spec->role == Role::kOutput && IsFloat(output.dtype);
  return kernels_->Compare(request);
}

Result<bool> Verifier::CheckOutputs(Session& session, const Case& one, const TaskBuffers& buffers,
                                    const Reference& reference) {
  const size_t checks_before = session.verdict.checks.size();
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(const bool passed, CheckOutput(session, one, buffers, output));
    if (!passed) return false;
  }
  // A re-evaluation may have widened the budget so far that passing shows nothing: the case then
  // counts as skipped.
  if (reference.mostly_undetermined() || (!reference.discriminates() && !session.run_skipped)) {
    session.verdict.checks.resize(checks_before);
    session.skipped.push_back(one);
  }
  return true;
}

Result<bool> Verifier::CheckOutput(Session& session, const Case& one, const TaskBuffers& buffers,
                                   const Reference::Output& output) {
  ATUNNER_TRY(CompareStats stats, CompareOutput(buffers, output));
  OutputJudgement judgement = JudgeUnder(one.instance, output, stats);
  while (judgement.beyond_budget) {
    ATUNNER_TRY(const bool changed, oracle_->ReevaluateBudget(buffers, one.instance));
    if (!changed) break;
    ATUNNER_TRY(stats, CompareOutput(buffers, output));
    judgement = JudgeUnder(one.instance, output, stats);
  }
  // Right at first and wrong after one element changed: an earlier result was replayed.
  if (one.instance.mutated && judgement.kind != VerdictKind::kCorrect)
    judgement.kind = VerdictKind::kStaleResult;
  const bool passed = session.Record("oracle", one, judgement.kind, judgement.reason);
  CheckRecord& record = session.verdict.checks.back();
  record.error = stats.RelativeNorm();
  record.bound = output.budget.norm;
  record.honest = output.budget.baseline_norm;
  if (passed && record.detail.empty())
    record.detail = fmt::format("'{}' against {}", output.name, oracle_->Describe(one.dims));
  return passed;
}

Result<bool> Verifier::CheckRepeat(Session& session, const Case& one, const TaskBuffers& buffers,
                                   const BoundPlan& plan) {
  if (spec_.tolerance.allow_nondeterminism) return true;
  ATUNNER_TRY(const std::vector<uint64_t> first, FingerprintWhere(buffers, true));
  const int repeats = device_.evidence() == Evidence::kPredicted ? 1 : 3;
  for (int i = 0; i < repeats; ++i) {
    ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(*kernels_, one.instance));
    ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
    ATUNNER_TRY(const bool ran, CheckLaunch(session, one, buffers, plan));
    if (!ran) return false;
    ATUNNER_TRY(const std::vector<uint64_t> again, FingerprintWhere(buffers, true));
    if (again != first) {
      return session.Record("repeat", one, VerdictKind::kNondeterministic,
                            "the same inputs gave other bits the second time");
    }
  }
  return session.Record("repeat", one, VerdictKind::kCorrect,
                        fmt::format("bit-equal in {} runs", repeats + 1));
}

Result<std::vector<uint64_t>> Verifier::FingerprintWhere(const TaskBuffers& buffers, bool outputs) {
  std::vector<MemoryRange> wanted;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (outputs ? tensor.is_output() : tensor.spec->role == Role::kInput)
      wanted.push_back({tensor.address, static_cast<uint64_t>(tensor.shape.bytes)});
  }
  return kernels_->Fingerprints(wanted);
}

}  // namespace atunner
