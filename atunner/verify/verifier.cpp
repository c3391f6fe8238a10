#include "atunner/verify/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/in_place_sample.h"

namespace atunner {
namespace {

VerdictKind VerdictOf(const Hazard& hazard) {
  switch (hazard.kind) {
    case Hazard::Kind::kOutOfBounds:
    case Hazard::Kind::kMisaligned:
      return VerdictKind::kOutOfBounds;
    case Hazard::Kind::kUninitialisedShared:
    case Hazard::Kind::kUninitialisedGlobal:
    case Hazard::Kind::kUninitialisedLocal:
    case Hazard::Kind::kUninitialisedRegister:
    case Hazard::Kind::kAsyncCopyInFlight:
    case Hazard::Kind::kInvalidShuffle:
    case Hazard::Kind::kRace:
      return VerdictKind::kRace;
    case Hazard::Kind::kDivergentBarrier:
    case Hazard::Kind::kDeadlock:
      return VerdictKind::kDeadlock;
    case Hazard::Kind::kInstructionBudget:
      return VerdictKind::kTimeout;
    case Hazard::Kind::kTrap:
    case Hazard::Kind::kLeak:
      return VerdictKind::kCrash;
  }
  return VerdictKind::kCrash;
}

std::pair<VerdictKind, std::string> VerdictOf(const LaunchOutcome& outcome) {
  if (!outcome.hazards.empty()) {
    const Hazard& first = outcome.hazards.front();
    std::string text = fmt::format("{}: {}", Name(first.kind), first.detail);
    if (!first.where.empty()) text = first.where + ": " + text;
    return {VerdictOf(first), text};
  }
  switch (outcome.kind) {
    case LaunchOutcome::Kind::kRefused:
      return {VerdictKind::kLaunchFailure, outcome.message};
    case LaunchOutcome::Kind::kTimeout:
      return {VerdictKind::kTimeout, outcome.message};
    case LaunchOutcome::Kind::kUnsupported:
      return {VerdictKind::kUnsupported, outcome.message};
    default:
      return {VerdictKind::kCrash, outcome.message};
  }
}

/// Blocks that stand for the rest: corners, edges, the last, and some drawn at random.
std::vector<uint64_t> SampleBlocks(uint64_t total, uint64_t seed) {
  constexpr uint64_t kSample = 24;
  std::vector<uint64_t> blocks;
  if (total <= 2 * kSample) return blocks;  // empty = all
  blocks = {0, 1, total / 2, total - 2, total - 1};
  Random random(seed);
  while (blocks.size() < kSample) blocks.push_back(random.Below(total));
  std::ranges::sort(blocks);
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

/// What else a NaN turns into NaN, and where an order puts it, is the plain algorithm's affair;
/// that it is not lost is not, nor that numbers stay right.
OutputJudgement JudgeUnder(const InputInstance& instance, const Reference::Output& output,
                           CompareStats stats, bool sampled) {
  if (instance.family == InputFamily::kNan) {
    if (!IsFloat(output.dtype)) return {};
    stats.new_nonfinite = 0;
  }
  return JudgeOutput(output.name, stats, output.budget, sampled);
}

uint64_t TotalBlocks(const BoundPlan& plan) {
  uint64_t total = 0;
  for (const BoundStep& step : plan.steps) total = std::max(total, step.shape.grid.Count());
  return total;
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
    const uint64_t threads = step.block.Count();
    const uint64_t shared = uint64_t{resources->static_shared_bytes} + step.shared_bytes;
    if (shared > static_cast<uint64_t>(profile.shared_per_block)) {
      return fmt::format("{} needs {} bytes of shared memory per block, {} has {}", step.entry,
                         shared, profile.name, profile.shared_per_block);
    }
    if (threads > resources->max_threads) {
      return fmt::format(
          "{} can run at most {} threads per block ({} registers each), {} are asked for",
          step.entry, resources->max_threads, resources->registers, threads);
    }
    // A launch is checked as if its warps filled the partitions of the register file evenly.
    const uint64_t per_warp = (uint64_t{resources->registers} * 32 + 255) / 256 * 256;
    const auto partitions = static_cast<uint64_t>(std::max(1, profile.schedulers_per_sm));
    const uint64_t registers = per_warp *
                               (((threads + 31) / 32 + partitions - 1) / partitions * partitions);
    if (profile.registers_per_sm > 0 &&
        registers > static_cast<uint64_t>(profile.registers_per_sm)) {
      return fmt::format("{} needs {} registers per block, an SM has {}", step.entry, registers,
                         profile.registers_per_sm);
    }
  }
  return std::nullopt;
}

/// State of one candidate's examination.
struct Verifier::Session {
  const CandidateKernel& candidate;
  std::unique_ptr<LoadedModule> module;
  Verdict verdict;
  bool sampled = false;
  std::vector<uint64_t> blocks;
  /// Instances that prove nothing: a constant or a copy would pass them
  std::vector<Case> passed_over;
  bool insist = false;  ///< make them all the same

  /// Inputs with a NaN show that it is not lost, and no more.
  bool MetOracle(const Dims& dims) const {
    return std::ranges::any_of(verdict.checks, [&](const CheckRecord& record) {
      return record.check == "oracle" && record.dims == dims &&
             record.family != Name(InputFamily::kNan);
    });
  }

  /// Records a check; false when it failed, with the verdict set.
  bool Record(const char* check, const Case& one, VerdictKind kind, std::string detail) {
    CheckRecord record{.check = check,
                       .family = std::string(Name(one.instance.family)),
                       .dims = one.dims,
                       .detail = detail};
    record.passed = kind == VerdictKind::kCorrect;
    if (one.instance.mutated) record.family += ", one element changed";
    verdict.checks.push_back(std::move(record));
    if (kind == VerdictKind::kCorrect) return true;
    verdict.kind = kind;
    verdict.reason = fmt::format("{} ({} inputs): {}", check, verdict.checks.back().family, detail);
    return false;
  }
};

Result<std::unique_ptr<Verifier>> Verifier::Make(Device& device, Compiler& compiler,
                                                 KernelSpec spec, VerifyOptions options) {
  std::unique_ptr<Verifier> verifier(new Verifier(device, std::move(spec), options));
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

std::vector<Dims> Verifier::SizesFor(const CandidateKernel& candidate) const {
  std::vector<Dims> sizes = candidate.check_dims;
  // The virtual GPU cannot run a full problem in useful time when there is a small one that the
  // same binary serves.
  const bool too_slow = device_.evidence() == Evidence::kPredicted && !sizes.empty();
  if (options_.full_size && !too_slow && std::ranges::find(sizes, spec_.dims) == sizes.end())
    sizes.push_back(spec_.dims);
  if (sizes.empty()) sizes.push_back(spec_.dims);
  return sizes;
}

std::optional<std::string> Verifier::TooLargeToExecute(const CandidateKernel& candidate) const {
  // A user's kernel is its own reference, of which a sample of blocks does.
  if (device_.evidence() != Evidence::kPredicted || spec_.oracle.kind == Oracle::Kind::kKernel)
    return std::nullopt;
  if (!candidate.check_dims.empty() || oracle_->UseCpu(spec_.dims)) return std::nullopt;
  return "the task is too large to be executed on the virtual GPU, and this kernel is right at no "
         "smaller size";
}

std::vector<Verifier::Case> Verifier::Plan(const CandidateKernel& candidate) const {
  using enum InputFamily;
  std::vector<Case> cases;
  const bool has_float_input = std::ranges::any_of(spec_.args, [](const ArgSpec& arg) {
    return (arg.role == Role::kInput || arg.role == Role::kInOut) && IsFloat(arg.dtype) &&
           arg.fill.kind == Fill::Kind::kFamilies;
  });
  const std::vector<Dims> sizes = SizesFor(candidate);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool last = i + 1 == sizes.size();  // the largest, on a real device the task's own
    const uint64_t seed = Mix64(options_.seed + i);
    // families and changed elements are for floats: without them every drawing is a fresh one
    if (!has_float_input) {
      for (uint32_t k = 0; k < (last ? 5u : 2u); ++k)
        cases.push_back({sizes[i], {kNormal, Mix64(seed + k), false}, k / 2 % 2, k == 0});
      continue;
    }
    // Families of one seed would have the same order, and the largest at the same places.
    const auto drawing = [&](InputFamily family) {
      return InputInstance{
          family, family == kNormal ? seed : Mix64(seed + static_cast<uint64_t>(family)), false};
    };
    const InputInstance first = drawing(kNormal);
    cases.push_back({sizes[i], first, 0, true});
    // At once, at the same pointers, with one element different: a result kept by pointer, by a
    // prefix or by a checksum of a sample is stale.
    if (last) cases.push_back({sizes[i], {first.family, first.seed, true}, 0, false});
    cases.push_back({sizes[i], drawing(kNeedle), 1, false});
    if (!last) continue;
    cases.push_back({sizes[i], drawing(kCancelling), 1, false});
    cases.push_back({sizes[i], drawing(kHeavyTail), 0, false});
    cases.push_back({sizes[i], drawing(kLargeLogits), 1, false});
    cases.push_back({sizes[i], drawing(kDenormal), 0, false});
    cases.push_back({sizes[i], drawing(kNan), 1, false});
  }
  return cases;
}

Result<std::variant<VerifiedKernel, Verdict>> Verifier::Verify(
    std::shared_ptr<const CandidateKernel> candidate, Scrutiny scrutiny,
    std::optional<double> patience_seconds) {
  const double begun = SystemClock().Now();
  Session session{
      .candidate = *candidate, .module = nullptr, .verdict = {}, .blocks = {}, .passed_over = {}};
  if (const auto obstacle = ResourceObstacle(device_.profile(), *candidate, spec_)) {
    session.verdict.kind = VerdictKind::kResourceLimit;
    session.verdict.reason = *obstacle;
    return session.verdict;
  }
  auto module = device_.Load(candidate->module);
  if (!module) {
    const bool lacks = module.error().code == ErrorCode::kUnsupported;
    session.verdict.kind = lacks ? VerdictKind::kUnsupported : VerdictKind::kLaunchFailure;
    session.verdict.reason = module.error().ToString();
    return session.verdict;
  }
  session.module = std::move(*module);
  if (const auto obstacle = TooLargeToExecute(*candidate)) {
    session.verdict.kind = VerdictKind::kUnchecked;
    session.verdict.reason = *obstacle;
    return session.verdict;
  }
  for (Case one : Plan(*candidate)) {
    one.repeat = one.repeat && scrutiny != Scrutiny::kPlain;
    const bool late = patience_seconds && SystemClock().Now() - begun > *patience_seconds;
    if (late && session.MetOracle(one.dims)) continue;
    if (scrutiny == Scrutiny::kPlain && session.MetOracle(one.dims)) {
      // Whoever is examined next does not have to wait for them.
      ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
      ATUNNER_RETURN_IF_ERROR(ReferenceOf(*buffers, one));
      continue;
    }
    ATUNNER_TRY(const bool passed, RunCase(session, one));
    if (!passed) return session.verdict;
  }
  // At some size nothing could tell a right kernel from a constant (softmax of rows of one
  // element): then a right answer shows little, but a wrong one is still wrong.
  session.insist = true;
  const std::vector<Dims> sizes = SizesFor(*candidate);
  const bool proven = session.MetOracle(sizes.back());
  const auto checked = [&](const Case& one) { return session.MetOracle(one.dims); };
  std::erase_if(session.passed_over, checked);
  for (const Case& one : std::exchange(session.passed_over, {})) {
    ATUNNER_TRY(const bool passed, RunCase(session, one));
    if (!passed) return session.verdict;
  }
  const auto met = [&](const Dims& dims) { return session.MetOracle(dims); };
  // Of a few numbers of a small size most may be this or that by chance; the largest tells.
  const auto is_last = [&](const Case& one) { return one.dims == sizes.back(); };
  const bool open = !proven && std::ranges::any_of(session.passed_over, is_last);
  if (open || std::ranges::none_of(sizes, met)) {
    session.verdict.kind = VerdictKind::kInconclusive;
    session.verdict.reason =
        open ? "roundings decide too much of the result on all inputs: nothing can be compared"
             : "even the plain kernel leaves the range of its type on all inputs: nothing can be "
               "compared";
    return session.verdict;
  }
  session.verdict.sampled = session.sampled;
  return VerifiedKernel(std::move(candidate), std::move(session.module),
                        std::move(session.verdict));
}

Result<bool> Verifier::RunCase(Session& session, const Case& one) {
  ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(one.dims, one.slot));
  ATUNNER_TRY(const Reference* reference, ReferenceOf(*buffers, one));
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(*kernels_, one.instance));
  if (reference->overflows()) return true;
  // others must prove it
  if (!reference->discriminates() && !reference->reconsidered && !session.insist) {
    session.passed_over.push_back(one);
    return true;
  }

  auto plan = BindPlan(device_, session.candidate.plan, spec_, *buffers);
  if (!plan)
    return session.Record("launch", one, VerdictKind::kLaunchFailure, plan.error().ToString());
  session.blocks.clear();
  const bool slow = device_.evidence() == Evidence::kPredicted &&
                    reference_seconds_[one.dims] > options_.sample_above_seconds &&
                    spec_.oracle.kind == Oracle::Kind::kKernel;
  if (slow && plan->steps.size() == 1)
    session.blocks = SampleBlocks(TotalBlocks(*plan), one.instance.seed);
  const bool in_place = std::ranges::any_of(
      spec_.args, [](const ArgSpec& arg) { return arg.role == Role::kInOut; });
  if (session.blocks.empty() || !in_place)
    return Examine(session, one, *buffers, *reference, *plan);
  // Some blocks may leave a sum unfinished or the only element unwritten: a sample proves a result
  // right, not wrong.
  const Verdict so_far = session.verdict;
  ATUNNER_TRY(const bool passed, Examine(session, one, *buffers, *reference, *plan));
  if (passed || session.verdict.checks.back().check != "oracle") return passed;
  session.verdict = so_far;
  session.blocks.clear();
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(*kernels_, one.instance));
  return Examine(session, one, *buffers, *reference, *plan);
}

Result<bool> Verifier::Examine(Session& session, const Case& one, const TaskBuffers& buffers,
                               const Reference& reference, const BoundPlan& plan) {
  session.sampled |= !session.blocks.empty();
  std::vector<uint64_t>& before = input_prints_[{one.dims, one.instance}];  // equal draws are equal
  if (before.empty()) {
    ATUNNER_TRY(before, FingerprintWhere(buffers, false));
  }
  ATUNNER_RETURN_IF_ERROR(buffers.ArmGuards());
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  if (const Status copied = CopySymbols(device_, *session.module, plan); !copied) {
    return session.Record("launch", one, VerdictKind::kLaunchFailure, copied.error().ToString());
  }
  std::optional<InPlaceSample> sample;
  if (!session.blocks.empty()) {
    ATUNNER_TRY(sample, InPlaceSample::Before(device_, buffers));
  }
  ATUNNER_TRY(const auto state_before, device_.StateFingerprint(*session.module));
  ATUNNER_TRY(bool passed, CheckLaunch(session, one, buffers, plan));
  ATUNNER_TRY(const auto state_after, device_.StateFingerprint(*session.module));
  if (passed && state_before != state_after) {
    return session.Record(
        "state", one, VerdictKind::kStaleResult,
        "leaves its module's variables changed: what one launch keeps, a later one can replay");
  }
  if (passed) {
    ATUNNER_TRY(passed, CheckInputs(session, one, buffers, before));
  }
  if (passed) {
    if (sample) ATUNNER_RETURN_IF_ERROR(sample->Mask(device_));
    ATUNNER_TRY(passed, CheckOutputs(session, one, buffers, reference));
    if (sample) ATUNNER_RETURN_IF_ERROR(sample->Unmask(device_));
  }
  if (passed && one.repeat) {
    ATUNNER_TRY(passed, CheckRepeat(session, one, buffers, plan));
  }
  return passed;
}

/// A reference that is known costs nothing; the first time the inputs are drawn for it, and a
/// reference kernel may write its in-outs.
Result<const Reference*> Verifier::ReferenceOf(const TaskBuffers& buffers, const Case& one) {
  if (const Reference* known = oracle_->Find(buffers.dims(), one.instance)) return known;
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(*kernels_, one.instance));
  const double start = SystemClock().Now();
  ATUNNER_TRY(const Reference* reference, oracle_->Get(buffers, one.instance));
  double& slowest = reference_seconds_[one.dims];
  slowest = std::max(slowest, SystemClock().Now() - start);
  return reference;
}

Result<bool> Verifier::CheckLaunch(Session& session, const Case& one, const TaskBuffers& buffers,
                                   const BoundPlan& plan) {
  LaunchOptions options;
  options.timeout_seconds = options_.launch_timeout_seconds;
  options.blocks = session.blocks;
  // Who may give other results each time may race for them.
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

Result<CompareStats> Verifier::CompareOutput(const Session& session, const TaskBuffers& buffers,
                                             const Reference::Output& output) {
  const TaskBuffers::Tensor* tensor = buffers.Find(output.name);
  CompareRequest request{tensor->address, output.dtype, output.masked->address(), output.elements,
                         output.key,      output.scale, output.budget.element};
  request.choices = output.choices;
  // The poison's bits are a legitimate integer, and only a sample's in-out tensors are poisoned.
  request.poison_counts = !session.blocks.empty() ||
                          (tensor->spec->role == Role::kOutput && IsFloat(output.dtype));
  return kernels_->Compare(request);
}

Result<bool> Verifier::CheckOutputs(Session& session, const Case& one, const TaskBuffers& buffers,
                                    const Reference& reference) {
  const size_t checks_before = session.verdict.checks.size();
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(CompareStats stats, CompareOutput(session, buffers, output));
    OutputJudgement judgement = JudgeUnder(one.instance, output, stats, !session.blocks.empty());
    while (judgement.beyond_budget) {
      ATUNNER_TRY(const bool learnt, oracle_->Reconsider(buffers, one.instance));
      if (!learnt) break;
      ATUNNER_TRY(stats, CompareOutput(session, buffers, output));
      judgement = JudgeUnder(one.instance, output, stats, !session.blocks.empty());
    }
    // Wrong on changed content after right on the first: what was kept was replayed.
    if (one.instance.mutated && judgement.kind != VerdictKind::kCorrect)
      judgement.kind = VerdictKind::kStaleResult;
    const bool passed = session.Record("oracle", one, judgement.kind, judgement.reason);
    CheckRecord& record = session.verdict.checks.back();
    record.error = stats.RelativeNorm();
    record.bound = output.budget.norm;
    record.honest = output.budget.honest_norm;
    if (passed && record.detail.empty())
      record.detail = fmt::format("'{}' against {}", output.name, oracle_->Describe(one.dims));
    if (!passed) return false;
  }
  // Since it was reconsidered: to pass shows nothing, or, where most may be this or that, less than
  // nothing.
  if (reference.open() || (!reference.discriminates() && !session.insist)) {
    session.verdict.checks.resize(checks_before);
    session.passed_over.push_back(one);
  }
  return true;
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
