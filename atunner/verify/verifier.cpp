#include "atunner/verify/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/verify/budget/stated_tolerance.h"
#include "atunner/verify/code/mined_values.h"
#include "atunner/verify/executed_share.h"
#include "atunner/verify/given_kernel.h"
#include "atunner/verify/launch/outcome_verdict.h"
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
  // On inputs that are chosen for their values another formula may have a number in place of a NaN:
  // ∞/∞, 0/0, or the logarithm of a product in place of a sum of logarithms.
  if (!IsGeneral(Name(instance.family)) && instance.family != InputFamily::kNan) stats.lost_nan = 0;
  // Where zeros give zeros, a correct kernel may give its rounding error, but a number.
  if (instance.family == InputFamily::kZeros && !(output.self.squared_reference > 0))
    stats.squared_difference = stats.worst = 0;
  return JudgeOutput(output.name, stats, output.budget, false);
}

/// True if the results are compared although a constant would be right. The largest of ascending
/// numbers is the last one of every row, but half of the rows have negative numbers only.
bool IsComparedAnyway(const InputInstance& instance, const Reference& reference) {
  const bool integers = std::ranges::none_of(reference.outputs, [](const auto& output) {
    return IsFloat(output.dtype);  // whose rounding errors may be beyond all bounds there
  });
  return instance.family == InputFamily::kZeros || instance.family == InputFamily::kInfinities ||
         (integers &&
          (instance.family == InputFamily::kMonotone || instance.family == InputFamily::kFalling));
}

/// True if extreme constants of the code overflow: how far depends on the order of operations.
bool OverflowsByMinedValues(const InputInstance& instance, const Reference& reference) {
  const bool extreme = !instance.mined.floats.empty() && ModerateOf(instance.mined).empty();
  return extreme && std::ranges::any_of(reference.outputs, [](const Reference::Output& output) {
           return output.self.finite < output.elements;
         });
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
  ATUNNER_TRY(GivenKernel given, ReadGivenKernel(device, compiler, spec));
  spec = WithBearableFills(std::move(spec), given.uses, device.checks_bounds());
  std::unique_ptr<Verifier> verifier(new Verifier(device, compiler, std::move(spec), options));
  verifier->given_may_not_end_ = !given.uses.known || !given.uses.loops.empty();
  verifier->given_constants_ = std::move(given.constants);
  ATUNNER_TRY(verifier->kernels_, JudgeKernels::Make(device, compiler));
  ATUNNER_TRY(verifier->oracle_, OracleStore::Make(device, compiler, *verifier->kernels_,
                                                   verifier->spec_, options.memory));
  verifier->alias_ = std::make_unique<InPlaceAlias>(
      OracleContext{device, compiler, *verifier->kernels_, verifier->spec_});
  return verifier;
}

Result<const TaskBuffers*> Verifier::BuffersAt(const Dims& dims, uint32_t slot) {
  std::unique_ptr<TaskBuffers>& buffers = buffers_[{dims, slot}];
  if (buffers) return buffers.get();
  if (slot == 0 || !IsLarge(dims)) {
    ATUNNER_TRY(TaskBuffers made, TaskBuffers::Allocate(device_, spec_, dims, slot));
    buffers = std::make_unique<TaskBuffers>(std::move(made));
    return buffers.get();
  }
  ATUNNER_TRY(const TaskBuffers* first, BuffersAt(dims, 0));
  ATUNNER_TRY(TaskBuffers made, TaskBuffers::AllocateBeside(*first, spec_, slot, Lent::kAll));
  buffers = std::make_unique<TaskBuffers>(std::move(made));
  return buffers.get();
}

Result<VerifyAnswer> Verifier::VerifyOnce(std::shared_ptr<const CandidateKernel> candidate,
                                          VerifyLevel level,
                                          std::optional<double> time_limit_seconds) {
  const double ends = time_limit_seconds ? SystemClock().Now() + *time_limit_seconds
                                         : std::numeric_limits<double>::infinity();
  Session session{.candidate = *candidate,
                  .module = nullptr,
                  .level = level,
                  .second_module = nullptr,
                  .verdict = {},
                  .skipped = {}};
  if (!Prepare(session)) return session.verdict;
  session.StateHazards(hazards_, spec_.dims);
  ATUNNER_RETURN_IF_ERROR(CheckTolerance(session));
  ATUNNER_TRY(bool passed, RunCases(session, level, ends));
  if (!passed) return session.verdict;
  const std::vector<Dims> sizes = SizesFor(*candidate);
  const bool last_size_proven = session.HasOracleCheck(sizes.back());
  ATUNNER_TRY(passed, RunSkippedCases(session));
  if (!passed) return session.verdict;
  ATUNNER_TRY(passed, CheckInPlace(session, sizes));
  if (!passed) return session.verdict;
  StateCoverage(session);
  if (!session.verdict.passed()) return session.verdict;
  if (const auto reason = session.WhyInconclusive(sizes, last_size_proven)) {
    // Parts of sums, which the executed blocks leave, cannot be compared.
    session.verdict.kind = session.in_part ? VerdictKind::kUnchecked : VerdictKind::kInconclusive;
    session.verdict.reason = session.in_part && session.own_size ? session.own_size->reason
                                                                 : *reason;
    return session.verdict;
  }
  return VerifiedKernel(std::move(candidate), std::move(session.module),
                        std::move(session.verdict));
}

/// Once, for the largest size: a tolerance that the task states must tell results from trivial
/// ones.
Status Verifier::CheckTolerance(Session& session) {
  if (!StatesTolerance(spec_) || std::exchange(tolerance_checked_, true)) return {};
  const std::vector<Case> cases = PlanCases(spec_, SizesFor(session.candidate), options_.seed);
  if (cases.back().dims == spec_.dims) {
    ATUNNER_TRY(const bool in_part, IsOwnSizeInPart(session.candidate));
    if (in_part) return {};  // a reference of every element would take too long
  }
  ToleranceTest test;
  for (const Case& one : cases) {
    if (test.passed()) break;
    if (one.dims != cases.back().dims) continue;
    ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
    ATUNNER_TRY(const Reference* reference, ReferenceOf(session, *buffers, one));
    if (reference != nullptr) test.Add(*reference);
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
  const LaunchPlan& plan = session.candidate.plan;
  if (const auto resolved = Resolve(plan, spec_.dims, spec_.attributes); !resolved)
    return refuse(VerdictKind::kLaunchFailure, resolved.error().ToString());
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

/// The cases of the task and, before those of larger sizes, those whose inputs the codes name.
std::vector<Case> Verifier::PlannedCases(const CandidateKernel& candidate) {
  const std::vector<Dims> sizes = SizesFor(candidate);
  std::vector<Case> cases = PlanCases(spec_, sizes, options_.seed);
  const auto constants = [&](MinedValues values, const LaunchPlan& plan) {
    MineScalars(plan, spec_, sizes.front(), values);
    return values;
  };
  const bool users = spec_.oracle.kind == Oracle::Kind::kKernel && spec_.oracle.kernel;
  const MinedValues given = users ? constants(given_constants_, spec_.oracle.kernel->plan)
                                  : given_constants_;
  const MinedValues own = constants(MineValues(candidate.module.ptx), candidate.plan);
  const auto mined = PlanMinedCases(spec_, sizes.front(), options_.seed, given, own,
                                    candidates_constants_);
  // Those at the smallest size come first, because they cost least.
  const auto at = std::ranges::find_if(cases,
                                       [&](const Case& one) { return one.dims != sizes[0]; });
  cases.insert(at, mined.begin(), mined.end());
  return cases;
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
      ATUNNER_RETURN_IF_ERROR(ReferenceOf(session, *buffers, one));
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
  const auto checked = [&](const Case& one) { return session.HasGeneralCheck(one.dims); };
  std::erase_if(session.skipped, checked);
  for (const Case& one : std::exchange(session.skipped, {})) {
    ATUNNER_TRY(const bool passed, RunCase(session, one));
    if (!passed) return false;
  }
  return true;
}

Result<bool> Verifier::RunCase(Session& session, const Case& one) {
  if (session.in_part && one.dims == spec_.dims) return RunAtOwnSize(session, one);
  ATUNNER_TRY(const bool valid, IsValidSize(session, one));
  if (!valid) return true;
  ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
  ATUNNER_TRY(const Reference* reference, ReferenceOf(session, *buffers, one));
  if (reference == nullptr) return RunWithOwnConstants(session, one);
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(*kernels_, one.instance));
  if (reference->overflows() || OverflowsByMinedValues(one.instance, *reference))
    return RunWithOwnConstants(session, one);
  if (!reference->discriminates() && !reference->reevaluated && !session.run_skipped &&
      !IsComparedAnyway(one.instance, *reference)) {
    if (one.own) return RunWithOwnConstants(session, one);
    session.skipped.push_back(one);
    return true;
  }
  auto plan = BindPlan(device_, session.candidate.plan, spec_, *buffers, Workspaces::kFresh);
  if (!plan)
    return session.Record("launch", one, VerdictKind::kLaunchFailure, plan.error().ToString());
  // A repeated case runs in the usual order at first.
  const Run run{*session.module, *buffers, *plan, Poison::Fresh(),
                one.repeat ? 0 : SecretBits() | 1};
  return Examine(session, one, run, *reference);
}

Result<bool> Verifier::RunWithOwnConstants(Session& session, const Case& one) {
  if (!one.own) return true;
  candidates_constants_.Spoilt();
  Case alone = one;
  alone.instance.mined = *std::exchange(alone.own, {});
  return RunCase(session, alone);
}

Result<bool> Verifier::Examine(Session& session, const Case& one, const Run& run,
                               const Reference& reference) {
  ATUNNER_TRY(const bool passed, ExamineOnce(session, one, run, reference));
  return passed && one.repeat ? CheckRepeat(session, one, run, reference) : Result<bool>(passed);
}

Result<bool> Verifier::ExamineOnce(Session& session, const Case& one, const Run& run,
                                   const Reference& reference) {
  // Equal instances have equal inputs, so that their fingerprints are computed once; addresses in
  // them are others in other buffers.
  std::vector<uint64_t>& before = input_prints_[{one.dims, one.instance}];
  const auto holds_addresses = [](const TaskBuffers::Tensor& tensor) {
    return !tensor.addresses.empty();
  };
  if (before.empty() || std::ranges::any_of(run.buffers.tensors(), holds_addresses)) {
    ATUNNER_TRY(before, FingerprintInputs(run.buffers));
  }
  ATUNNER_TRY(bool passed, PrepareLaunch(session, one, run));
  if (!passed) return false;
  ATUNNER_TRY(passed, CheckLaunchAndState(session, one, run));
  if (!passed) return false;
  ATUNNER_TRY(passed, CheckInputs(session, one, run.buffers, before));
  if (!passed) return false;
  return CheckOutputs(session, one, run, reference);
}

Result<bool> Verifier::PrepareLaunch(Session& session, const Case& one, const Run& run) {
  ATUNNER_RETURN_IF_ERROR(run.buffers.ArmGuards());
  ATUNNER_RETURN_IF_ERROR(run.buffers.PoisonOutputs(*kernels_, run.poison));
  ATUNNER_RETURN_IF_ERROR(PoisonWorkspaces(device_, *kernels_, run.plan, run.poison));
  const Status copied = CopySymbols(device_, run.module, run.plan);
  return copied ||
         session.Record("launch", one, VerdictKind::kLaunchFailure, copied.error().ToString());
}

Result<bool> Verifier::CheckLaunchAndState(Session& session, const Case& one, const Run& run) {
  ATUNNER_TRY(const auto state_before, device_.StateFingerprint(run.module));
  ATUNNER_TRY(const bool passed, CheckLaunch(session, one, run));
  ATUNNER_TRY(const auto state_after, device_.StateFingerprint(run.module));
  if (!passed || state_before == state_after) return passed;
  return session.Record("state", one, VerdictKind::kStaleResult,
                        "leaves its module's global variables changed: a later launch could replay "
                        "an earlier result");
}

/// The reference of a case. If it is not known yet, inputs are drawn to compute it; callers draw
/// them again, since a reference kernel may write its in-out tensors.
Result<const Reference*> Verifier::ReferenceOf(Session& session, const TaskBuffers& buffers,
                                               const Case& one) {
  if (const Reference* known = oracle_->Find(buffers.dims(), one.instance)) return known;
  const auto unusable = unusable_.find({one.dims, one.instance});
  if (unusable != unusable_.end()) {
    session.RecordSkipped(one, unusable->second);
    return nullptr;
  }
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(*kernels_, one.instance));
  if (one.optional) {
    constexpr double kMostSeconds = 600;
    constexpr double kSecondsOfCounts = 2;  // counts of just any size may take hours
    const Status borne = oracle_->Try(buffers,
                                      given_may_not_end_ ? kSecondsOfCounts : kMostSeconds);
    if (!borne && borne.error().code != ErrorCode::kInvalidInput)
      return std::unexpected(borne.error());
    if (!borne) {
      session.RecordSkipped(one, unusable_[{one.dims, one.instance}] = borne.error().ToString());
      return nullptr;
    }
    ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(*kernels_, one.instance));
  }
  auto reference = oracle_->Get(buffers, one.instance);
  // A derived size may be valid for some inputs only: a label may be beyond its columns.
  const bool borne_before = valid_sizes_.contains(one.dims);
  if (reference || !borne_before || reference.error().code != ErrorCode::kInvalidInput)
    return reference;
  session.RecordSkipped(one, unusable_[{one.dims, one.instance}] = reference.error().ToString());
  return nullptr;
}

Result<bool> Verifier::CheckLaunch(Session& session, const Case& one, const Run& run) {
  LaunchOptions options;
  LimitWork(device_, options_.launch_timeout_seconds, options);
  LimitToFirst(most_work_, options);
  options.block_order = run.block_order;
  options.groups = hazards_;
  // A task that allows nondeterministic results allows the races behind them.
  options.check_global = !spec_.tolerance.allow_nondeterminism;
  ATUNNER_TRY(const LaunchOutcome outcome, RunPlan(device_, run.module, run.plan, options));
  if (!outcome.completed()) {
    const auto [kind, text] = VerdictOf(outcome);
    return session.Record("run", one, kind, text);
  }
  most_work_ = std::max(most_work_, outcome.warp_instructions);
  ATUNNER_TRY(const auto broken, run.buffers.BrokenGuard(*kernels_));
  if (broken)
    return session.Record("guard zones", one, VerdictKind::kOutOfBounds,
                          "wrote outside " + *broken);
  return true;
}

Result<bool> Verifier::CheckInputs(Session& session, const Case& one, const TaskBuffers& buffers,
                                   const std::vector<uint64_t>& before) {
  ATUNNER_TRY(const std::vector<uint64_t> after, FingerprintInputs(buffers));
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

Result<CompareStats> Verifier::CompareOutput(const Run& run, const Reference& reference,
                                             size_t number) {
  const Reference::Output& output = reference.outputs[number];
  const TaskBuffers::Tensor& tensor = *run.buffers.Find(output.name);
  return CompareWithReference({device_, compiler_, *kernels_, spec_, options_.memory}, run.buffers,
                              reference, number, tensor.address, output.budget.element,
                              TaskBuffers::PoisonOf(tensor, run.poison));
}

Result<bool> Verifier::CheckOutputs(Session& session, const Case& one, const Run& run,
                                    const Reference& reference) {
  const size_t checks_before = session.verdict.checks.size();
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    ATUNNER_TRY(const bool passed, CheckOutput(session, one, run, reference, i));
    if (!passed) return false;
  }
  // A re-evaluation may have widened the budget so far that passing shows nothing: the case then
  // counts as skipped.
  if (reference.mostly_undetermined() ||
      (!reference.discriminates() && !session.run_skipped && !OnlyRefutes(one.instance.family))) {
    session.verdict.checks.resize(checks_before);
    session.skipped.push_back(one);
  }
  return true;
}

Result<bool> Verifier::CheckOutput(Session& session, const Case& one, const Run& run,
                                   const Reference& reference, size_t number) {
  const Reference::Output& output = reference.outputs[number];
  ATUNNER_TRY(CompareStats stats, CompareOutput(run, reference, number));
  OutputJudgement judgement = JudgeUnder(one.instance, output, stats);
  // A few elements that hold the poison may be results of other choices, e.g. among equal numbers:
  // small integers equal the poison by chance, each in one of about 500 elements.
  const auto may_be_chance = [&] {
    constexpr uint64_t kOneOf = 16;
    return judgement.kind == VerdictKind::kNotWritten && stats.unwritten * kOneOf <= stats.elements;
  };
  while (judgement.beyond_budget || may_be_chance()) {
    ATUNNER_TRY(const bool changed, oracle_->ReevaluateBudget(run.buffers, one.instance));
    if (!changed) break;
    ATUNNER_TRY(stats, CompareOutput(run, reference, number));
    judgement = JudgeUnder(one.instance, output, stats);
  }
  // Right at first and wrong after one element changed: an earlier result was replayed.
  const bool changed = one.instance.mutated && one.instance.family != InputFamily::kNan;
  if (changed && judgement.kind != VerdictKind::kCorrect)
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

Result<std::vector<uint64_t>> Verifier::FingerprintInputs(const TaskBuffers& buffers) {
  std::vector<MemoryRange> wanted;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role == Role::kInput)
      wanted.push_back({tensor.address, static_cast<uint64_t>(tensor.shape.bytes)});
  }
  return kernels_->Fingerprints(wanted);
}

}  // namespace atunner
