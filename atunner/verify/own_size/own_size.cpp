#include "atunner/verify/own_size/own_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/verify/launch/outcome_verdict.h"

namespace atunner {
namespace {

constexpr uint64_t kSampledBlocks = 24;
constexpr uint64_t kBlocksBeside = 96;
/// Room of a run for blocks that do more than those of the sample.
constexpr double kUneven = 4;
/// Values of the kernel as given that are kept on the host.
constexpr uint64_t kMostKeptBytes = uint64_t{2} << 30;
/// Share of the elements that the kernel as given writes, below which a sample of a candidate's
/// blocks hints at unwritten elements.
constexpr double kFewer = 0.95;

uint64_t PoisonOfRun(const InputInstance& instance, uint64_t run) {
  return Mix64(Mix64(instance.seed) + 0x5851f42d4c957f2dull * run);
}

std::string Percent(double share) {
  return share > 0.0995 ? fmt::format("{:.{}f} %", 100 * share, share < 0.9995 ? 0 : 4)
                        : fmt::format("{:.2g} %", 100 * share);
}

}  // namespace

std::string TextOf(const Dims& dims) {
  std::string text;
  for (const auto& [name, value] : dims)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string AtOwnSize(const Dims& dims) {
  const std::string text = TextOf(dims);
  return text.empty() ? "at its own size" : "at its own size (" + text + ")";
}

double OwnSizeCheck::WorkAllowed(Effort effort) const {
  switch (effort) {
    case Effort::kSample:
      return 0;
    case Effort::kScreening:
      return limits_.screening;
    case Effort::kFinal:
      return limits_.final;
  }
  return 0;
}

Result<std::unique_ptr<OwnSizeCheck>> OwnSizeCheck::Make(const OracleContext& context,
                                                         const WorkLimits& limits) {
  if (!context.spec.oracle.kernel) return Invalid("the task names no reference kernel");
  std::unique_ptr<OwnSizeCheck> check(new OwnSizeCheck(context, limits));
  ATUNNER_RETURN_IF_ERROR(check->Begin());
  return check;
}

Status OwnSizeCheck::Begin() {
  ATUNNER_TRY(program_, BuildProgram(oracle_, *oracle_.spec.oracle.kernel));
  ATUNNER_TRY(OwnSizeMemory memory, OwnSizeMemory::Allocate(oracle_.device, oracle_.spec));
  memory_ = std::make_unique<OwnSizeMemory>(std::move(memory));
  context_ = std::make_unique<OwnSizeContext>(
      OwnSizeContext{oracle_.device, oracle_.kernels, oracle_.spec, *memory_});
  ATUNNER_TRY(OwnSizeKernel kernel,
              OwnSizeKernel::Make(*context_, *program_->module, program_->plan,
                                  kAllHazards & ~kToleratedHazards));
  as_given_ = std::make_unique<OwnSizeKernel>(std::move(kernel));
  return {};
}

Status OwnSizeCheck::Keep(Given& given, OwnSizeRun run) {
  given.run = std::move(run);
  given.values.clear();
  size_t output = 0;
  for (const TaskBuffers::Tensor& tensor : memory_->buffers().tensors()) {
    if (!tensor.is_output()) continue;
    ATUNNER_TRY(WrittenValues values,
                WrittenValues::Read(oracle_.device, tensor, given.run.written[output++]));
    given.values.push_back(std::move(values));
  }
  double all = 0;
  for (const TaskBuffers::Tensor& tensor : memory_->buffers().tensors())
    all += tensor.is_output() ? static_cast<double>(tensor.shape.elements) : 0.0;
  given.elements = std::min(all, given.run.WholeElements());
  return {};
}

Result<OwnSizeCheck::Given*> OwnSizeCheck::GivenOn(const InputInstance& instance) {
  const auto known = given_.find(instance);
  if (known != given_.end()) return &known->second;
  Given& given = given_[instance];
  const uint64_t poison = PoisonOfRun(instance, 0);
  if (as_given_->CanBeSampled()) {
    given.blocks = SampleBlocks(as_given_->grid(), kSampledBlocks, Mix64(instance.seed));
    ATUNNER_TRY(OwnSizeRun run, as_given_->RunSome(instance, poison, given.blocks,
                                                   static_cast<uint64_t>(limits_.sample)));
    given.blocks.resize(std::min<size_t>(given.blocks.size(), run.outcome.blocks_executed));
    ATUNNER_RETURN_IF_ERROR(Keep(given, std::move(run)));
  }
  return &given;
}

Result<double> OwnSizeCheck::WorkOfKernelAsGiven(const InputInstance& instance) {
  ATUNNER_TRY(Given * given, GivenOn(instance));
  if (!as_given_->CanBeSampled())
    ATUNNER_RETURN_IF_ERROR(Complete(*given, instance, limits_.screening));
  return given->run.outcome.completed() ? given->run.WholeWork() : 1e300;
}

Status OwnSizeCheck::Complete(Given& given, const InputInstance& instance, double most_work) {
  const bool sampled = given.run.outcome.blocks_executed > 0 && given.run.outcome.completed();
  uint64_t bytes = 0;
  for (const TaskBuffers::Tensor& tensor : memory_->buffers().tensors())
    bytes += tensor.is_output() ? static_cast<uint64_t>(tensor.shape.bytes) : 0;
  if (given.run.whole() || bytes > kMostKeptBytes || most_work <= 0 ||
      (sampled && given.run.WholeWork() > most_work))
    return {};
  ATUNNER_TRY(OwnSizeRun run, as_given_->Run(instance, PoisonOfRun(instance, 1), {},
                                             static_cast<uint64_t>(kUneven * most_work)));
  if (!run.whole()) return {};
  given.blocks.clear();
  given.settled = true;
  return Keep(given, std::move(run));
}

Result<bool> OwnSizeCheck::IsSettled(Given& given, const InputInstance& instance) {
  if (given.settled) return *given.settled;
  const bool in_place = std::ranges::any_of(
      oracle_.spec.args, [](const ArgSpec& arg) { return arg.role == Role::kInOut; });
  given.settled = false;
  if (in_place) return false;
  ATUNNER_TRY(OwnSizeRun run,
              as_given_->Run(instance, PoisonOfRun(instance, 2), given.blocks,
                             static_cast<uint64_t>(kUneven * kUneven * limits_.sample)));
  Given again;
  ATUNNER_RETURN_IF_ERROR(Keep(again, std::move(run)));
  given.settled = again.run.outcome.completed() &&
                  std::ranges::equal(given.values, again.values, [](const auto& a, const auto& b) {
                    return a.elements == b.elements && a.values == b.values;
                  });
  return *given.settled;
}

/// Results of one run of a candidate beside those of the kernel as given.
struct OwnSizeCheck::Comparison {
  uint64_t compared = 0;
  uint64_t missing = 0;  ///< that the kernel as given wrote and the run did not
  uint64_t wrong = 0;
  std::string first_missing, first_wrong;  ///< "element 7 of 'y'"
  double worst = 0;
  double bound = 0;
};

class OwnSizeCheck::Judging {
 public:
  Judging(OwnSizeCheck& check, Given& given, OwnSizeKernel& kernel, const InputInstance& instance,
          double element_bound)
      : check_(check),
        given_(given),
        kernel_(kernel),
        instance_(instance),
        element_bound_(element_bound) {}

  Result<OwnSizeFindings> Run(Effort effort) {
    allowed_ = check_.WorkAllowed(effort);
    bool whole = !kernel_.CanBeSampled() && effort != Effort::kSample;
    double work = 0;  // of all blocks; 0 = unknown
    if (kernel_.CanBeSampled()) {
      ATUNNER_TRY(const bool goes_on, Sample());
      if (!goes_on) return std::move(findings_);
      work = run_.outcome.completed() ? run_.WholeWork() : 0;
      allowed_ = Odd() ? check_.limits_.final : check_.WorkAllowed(effort);
      whole = work <= allowed_;
    }
    return whole ? Whole(std::max(work, check_.limits_.screening)) : Sampled();
  }

 private:
  OwnSizeFindings Refuse(VerdictKind kind, const std::string& what) {
    findings_.kind = kind;
    findings_.reason = AtOwnSize(check_.oracle_.spec.dims) + ": " + what;
    return findings_;
  }

  /// Runs a sample of the blocks. False if it shows a fault; a sample that waits for other blocks
  /// shows none.
  Result<bool> Sample() {
    const Dim3& grid = kernel_.grid();
    auto blocks = given_.blocks.empty()
                      ? SampleBlocks(grid, kSampledBlocks, Mix64(instance_.seed ^ 1))
                      : BlocksBeside(given_.blocks, check_.as_given_->grid(), grid, kBlocksBeside);
    for (const uint64_t more : SampleBlocks(grid, kSampledBlocks / 3, Mix64(instance_.seed ^ 2)))
      blocks.push_back(more);
    std::ranges::sort(blocks);
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    std::swap(blocks.front(), blocks[blocks.size() / 2]);
    ATUNNER_TRY(run_, kernel_.RunSome(instance_, PoisonOfRun(instance_, 3), blocks,
                                      static_cast<uint64_t>(check_.limits_.sample)));
    if (FailedForGood()) return false;
    ATUNNER_TRY(comparison_, Compare());
    return true;
  }

  /// True if the run failed in a way in which it fails with all blocks too; with the finding.
  bool FailedForGood() {
    if (run_.outcome.completed()) return false;
    const auto [kind, text] = VerdictOf(run_.outcome);
    if (kind == VerdictKind::kTimeout || kind == VerdictKind::kDeadlock) return false;
    Refuse(kind, text);
    return true;
  }

  /// True if the sample hints at a fault that only a run of all blocks can settle.
  bool Odd() const {
    const bool fewer = run_.WholeElements() < kFewer * given_.elements;
    return !run_.outcome.completed() || fewer || comparison_.wrong > 0 || comparison_.compared == 0;
  }

  Result<Comparison> Compare() {
    Comparison all;
    size_t output = 0;
    for (const TaskBuffers::Tensor& tensor : check_.memory_->buffers().tensors()) {
      if (!tensor.is_output()) continue;
      const size_t i = output++;
      if (i < given_.values.size())
        ATUNNER_RETURN_IF_ERROR(CompareOutput(tensor, given_.values[i], run_.written[i], all));
    }
    return all;
  }

  Status CompareOutput(const TaskBuffers::Tensor& tensor, const WrittenValues& reference,
                       const std::vector<ElementRange>& written, Comparison& all) {
    const auto at = [&](uint64_t element) {
      return fmt::format("element {} of '{}'", element, tensor.spec->name);
    };
    const auto missing = Without(reference.elements, written);
    if (!missing.empty() && all.missing == 0) all.first_missing = at(missing.front().begin);
    all.missing += SizeOf(missing);
    ATUNNER_TRY(
        const WrittenValues result,
        WrittenValues::Read(check_.oracle_.device, tensor, Common(reference.elements, written)));
    const ElementComparison found = CompareElements(result, reference.Part(result.elements),
                                                    check_.oracle_.spec.tolerance, element_bound_);
    if (found.wrong > 0 && all.wrong == 0) all.first_wrong = at(found.first_wrong);
    all.wrong += found.wrong;
    all.compared += found.compared;
    all.worst = std::max(all.worst, found.worst);
    all.bound = std::max(all.bound, found.bound);
    return {};
  }

  void SetCoverage() {
    findings_.coverage.executed = std::min(
        1.0, static_cast<double>(run_.outcome.blocks_executed) / static_cast<double>(run_.blocks));
    findings_.coverage.compared = given_.run.whole() && comparison_.missing == 0 &&
                                          comparison_.wrong == 0
                                      ? 1.0
                                  : given_.elements > 0
                                      ? std::min(1.0, static_cast<double>(comparison_.compared) /
                                                          given_.elements)
                                      : 0.0;
    findings_.error = comparison_.worst;
    findings_.bound = comparison_.bound;
  }

  OwnSizeFindings WrongResult() {
    return Refuse(VerdictKind::kWrongResult,
                  fmt::format("{} of {} compared elements differ from those of the kernel as "
                              "given, first {} (worst error {:.3g}, bound {:.3g})",
                              comparison_.wrong, comparison_.compared, comparison_.first_wrong,
                              comparison_.worst, comparison_.bound));
  }

  /// The findings of a sample.
  Result<OwnSizeFindings> Sampled(const std::string& why = "") {
    if (comparison_.wrong > 0) {
      ATUNNER_TRY(const bool settled, check_.IsSettled(given_, instance_));
      if (settled) return WrongResult();
      comparison_ = {};  // both have parts of sums
    }
    SetCoverage();
    findings_.kind = VerdictKind::kSampled;
    findings_.reason = fmt::format("{} {} of the blocks ran and {} of the results were compared{}",
                                   AtOwnSize(check_.oracle_.spec.dims),
                                   Percent(findings_.coverage.executed),
                                   Percent(findings_.coverage.compared), why);
    return findings_;
  }

  /// True if all that the kernel as given writes is known to be written. An estimate of its number
  /// may be a little too large.
  bool AllWritten() const {
    constexpr double kNearly = 0.999;
    return given_.run.whole() ? comparison_.missing == 0
                              : static_cast<double>(run_.elements()) >= kNearly * given_.elements;
  }

  /// Runs all blocks and judges them.
  Result<OwnSizeFindings> Whole(double work) {
    ATUNNER_RETURN_IF_ERROR(check_.Complete(given_, instance_, allowed_));
    ATUNNER_TRY(OwnSizeRun all, kernel_.Run(instance_, PoisonOfRun(instance_, 4), {},
                                            static_cast<uint64_t>(kUneven * work)));
    std::swap(run_, all);
    if (FailedForGood()) return findings_;
    if (!run_.outcome.completed()) {
      std::swap(run_, all);
      return Sampled(", since all of them take too long");
    }
    ATUNNER_TRY(comparison_, Compare());
    return JudgeWhole();
  }

  Result<OwnSizeFindings> JudgeWhole() {
    if (comparison_.missing > 0)
      return Refuse(VerdictKind::kNotWritten,
                    fmt::format("{} of {} elements that the kernel as given writes are not "
                                "written, first {}",
                                comparison_.missing, comparison_.missing + comparison_.compared,
                                comparison_.first_missing));
    if (comparison_.wrong > 0 && !given_.run.whole()) {
      ATUNNER_TRY(const bool settled, check_.IsSettled(given_, instance_));
      if (!settled) {
        comparison_ = {};
        return Sampled(", since blocks of the kernel as given add to each other's results");
      }
    }
    if (comparison_.wrong > 0) return WrongResult();
    SetCoverage();
    if (comparison_.compared == 0) return Sampled();
    return AllWritten() ? findings_
                        : Sampled(
                              ", and fewer were written than the kernel as given seems to "
                              "write");
  }

  OwnSizeCheck& check_;
  Given& given_;
  OwnSizeKernel& kernel_;
  const InputInstance& instance_;
  double element_bound_;
  double allowed_ = 0;  ///< warp instructions of one run
  OwnSizeRun run_;      ///< the latest of the candidate
  Comparison comparison_;
  OwnSizeFindings findings_;
};

Result<OwnSizeFindings> OwnSizeCheck::Run(LoadedModule& module, const LaunchPlan& plan,
                                          const InputInstance& instance, Effort effort,
                                          double element_bound, uint8_t hazards) {
  ATUNNER_TRY(Given * given, GivenOn(instance));
  ATUNNER_RETURN_IF_ERROR(Complete(*given, instance, WorkAllowed(effort)));
  ATUNNER_TRY(OwnSizeKernel kernel, OwnSizeKernel::Make(*context_, module, plan, hazards));
  return Judging(*this, *given, kernel, instance, element_bound).Run(effort);
}

}  // namespace atunner
