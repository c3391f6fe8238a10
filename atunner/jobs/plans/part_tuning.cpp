#include "atunner/jobs/plans/part_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "atunner/codegen/template/plain_schedule.h"
#include "atunner/judge/candidate_compiler.h"
#include "atunner/measure/harness.h"
#include "atunner/model/kernel/tensor_totals.h"
#include "atunner/tune/part_choices.h"

namespace atunner::jobs {
namespace {

/// Trials of a kernel without a search: the first is nearly always right.
constexpr int64_t kMostGuesses = 11;
/// A judge has a process of its own on the GPU. Half of its time is the host's.
constexpr size_t kMostJudges = 6;
constexpr size_t kCoresPerJudge = 4;
/// Memory of a judge: the task's tensors, as much for references, and so many bytes; judges
/// together have half of the device's.
constexpr double kJudgeBytes = 2e9;

size_t HostCores() { return std::max(1u, std::thread::hardware_concurrency()); }

/// Fills the compiler's cache with every part's first configuration, on all cores. What does not
/// compile is reported when the part is examined.
Status CompileFirstGuesses(const std::vector<PlanPart>& parts, const DeviceProfile& profile,
                           const TuningOptions& options, Services& services,
                           const std::stop_token& stop) {
  ATUNNER_TRY(const auto compiler, services.compilers.Open(options.compile_timeout_seconds));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts.size() && !stop.stop_requested(); i = next++) {
      const ScheduleTemplate& schedule = *parts[i].schedule;
      Candidate first;
      first.what = schedule.Default();
      (void)CandidateCompiler(schedule, *compiler, profile.Arch()).Compile(first, stop);
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min(HostCores(), parts.size()); ++i) threads.emplace_back(work);
  return {};
}

/// The budget of each part, which together have the whole one.
std::vector<Budget> BudgetsOf(const std::vector<PlanPart>& parts, const TuningOptions& options,
                              const DeviceProfile& profile) {
  if (options.thoroughness != Thoroughness::kSearch)
    return {parts.size(), {.trials = kMostGuesses, .seconds = {}}};
  std::vector<double> least_ns;
  for (const PlanPart& part : parts)
    least_ns.push_back(PhysicalFloorNs(part.schedule->spec(), profile));
  if (least_ns.size() == 1) return {options.budget};
  return DivideBudget(options.budget, least_ns).parts;
}

/// How many parts are judged at the same time.
size_t JudgesFor(const std::vector<PlanPart>& parts, const TuningOptions& options,
                 const DeviceProfile& profile) {
  if (options.thoroughness == Thoroughness::kSearch) return 1;
  double largest = 0;
  for (const PlanPart& part : parts) {
    const KernelSpec& spec = part.schedule->spec();
    largest = std::max(largest, TotalsOf(spec, spec.dims).bytes);
  }
  const double room = static_cast<double>(profile.dram_bytes) / 2 / (2 * largest + kJudgeBytes);
  const size_t most = std::min({HostCores() / kCoresPerJudge, kMostJudges, parts.size()});
  return std::clamp<size_t>(static_cast<size_t>(room), 1, std::max<size_t>(most, 1));
}

/// Why the last trial was refused.
std::string ReasonOf(const RunResult& failed) {
  const std::vector<Trial>& trials = failed.report.trials;
  if (trials.empty()) return "no trial was made";
  const Verdict& last = trials.back().verdict;
  const std::string counted = trials.size() == 1 ? "the trial" : "the last trial";
  if (last.kind == VerdictKind::kCorrect)
    return counted + " was refused when it was verified again";
  return fmt::format("{} was refused ({}): {}", counted, Name(last.kind), last.reason);
}

}  // namespace

struct PartTuning::Work {
  const std::vector<PlanPart>& parts;
  const Path& plan;
  std::vector<Budget> budgets;
  std::vector<std::optional<RunResult>> results;
  std::atomic<size_t> next = 0;
  std::optional<Error> error;  ///< the first; guarded by mutex_
};

PartTuning::PartTuning(const Target& target, const TuningOptions& options, Services& services,
                       const EventSink& events, const std::stop_token& stop)
    : target_(target),
      options_(options),
      services_(services),
      stop_(stop),
      events_([this, &events](const Event& event) {
        const std::lock_guard lock(mutex_);
        events(event);
      }) {
  if (options_.thoroughness != Thoroughness::kSearch)
    options_.baselines = options_.transfer = false;
}

Result<std::vector<RunResult>> PartTuning::Run(const std::vector<PlanPart>& parts,
                                               const Path& plan) {
  Work work{parts, plan, BudgetsOf(parts, options_, target_.profile),
            std::vector<std::optional<RunResult>>(parts.size())};
  const bool searches = options_.thoroughness == Thoroughness::kSearch;
  if (!searches)
    ATUNNER_RETURN_IF_ERROR(
        CompileFirstGuesses(parts, target_.profile, options_, services_, stop_));
  const size_t judges = JudgesFor(parts, options_, target_.profile);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < judges; ++i) threads.emplace_back([&] { TuneNext(work); });
    TuneNext(work);
  }
  if (work.error) return std::unexpected(*work.error);
  std::vector<RunResult> results;
  for (std::optional<RunResult>& result : work.results) results.push_back(*std::move(result));
  return results;
}

/// Tunes one part after the other until none is left or one fails.
void PartTuning::TuneNext(Work& work) {
  const auto failed = [&](Error error) {
    const std::lock_guard lock(mutex_);
    if (!work.error) work.error = std::move(error);
    work.next = work.parts.size();
  };
  TaskTuner tuner(target_, options_, services_, events_, stop_);
  Status opened = [&] {  // one after the other: the first makes the store's tables
    const std::lock_guard lock(mutex_);
    return tuner.Open();
  }();
  if (!opened) return failed(std::move(opened.error()));
  for (size_t i = work.next++; i < work.parts.size(); i = work.next++) {
    events_(PartStartedEvent{i + 1, work.parts.size()});
    auto tuned = TunePart(tuner, work.parts[i], work.plan, work.budgets[i]);
    if (!tuned) return failed(std::move(tuned.error()));
    work.results[i] = *std::move(tuned);
  }
}

Result<RunResult> PartTuning::TunePart(TaskTuner& tuner, const PlanPart& part, const Path& plan,
                                       const Budget& budget) {
  const Path out = plan / part.folder;
  ATUNNER_TRY(RunResult tuned, tuner.Tune(*part.schedule, out, budget));
  if (tuned.found()) return tuned;
  ATUNNER_TRY(RunResult plain, TunePlain(tuner, part, out, tuned));
  if (plain.found()) return plain;
  if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  return Fail(ErrorCode::kUnsupported,
              fmt::format("no correct kernel was found for '{}': {}", part.schedule->spec().name,
                          ReasonOf(tuned)),
              plan.string(), "its report says more: " + tuned.page.string());
}

/// Plain kernels in the place of a family's, of which none is correct. `failed` where that was not
/// tried.
Result<RunResult> PartTuning::TunePlain(TaskTuner& tuner, const PlanPart& part, const Path& out,
                                        const RunResult& failed) {
  if (stop_.stop_requested()) return failed;
  auto plain = PlainSchedule(part.schedule->spec(), target_.profile);
  if (!plain) return failed;
  const std::string note = fmt::format("plain kernels compute '{}': {}", part.schedule->spec().name,
                                       ReasonOf(failed));
  events_(NoteEvent{note});
  {
    const std::lock_guard lock(mutex_);
    notes_.push_back(note);
  }
  return tuner.Tune(**plain, out, {.trials = 1, .seconds = {}});
}

}  // namespace atunner::jobs
