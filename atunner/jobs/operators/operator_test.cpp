#include "atunner/jobs/operators/operator_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <ranges>
#include <thread>

#include "atunner/codegen/template/family.h"
#include "atunner/model/kernel/tensor_totals.h"

namespace atunner::jobs {
namespace {

/// Budgets are multiples of the plain kernel's error. That it is itself no larger than its type
/// explains keeps a wrong plain kernel from excusing everything: on normal inputs, in the norm of
/// an output.
double LargestHonest(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-10;
    case DType::kFloat32:
      return 1e-3;
    case DType::kFloat16:
      return 1e-2;
    case DType::kBFloat16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return 5e-2;
    default:
      return 0;
  }
}
double LargestHonest(const KernelSpec& spec) {
  double largest = 0;
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kOutput) largest = std::max(largest, LargestHonest(arg.dtype));
  }
  return largest;
}

constexpr int64_t kFewElements = 32;

OperatorCaseResult Refused(const Error& error) {
  return {.kernel = "none", .verdict = "error", .reason = error.ToString()};
}

/// The first family's default configuration, or else the plain kernels.
Result<CandidateKernel> CandidateFor(const KernelSpec& spec, const Target& target,
                                     Compiler& compiler, OperatorCaseResult& result) {
  CandidateKernel candidate;
  result.kernel = "plain";
  RenderedKernel kernel;
  ATUNNER_TRY(const Task task, Task::Make(spec));
  if (const auto schedule = MakeTemplate(task, target.profile)) {
    result.kernel = std::string(FamilyOf(task)->name);
    ATUNNER_TRY(kernel, (*schedule)->Render((*schedule)->Default()));
    candidate.check_dims = (*schedule)->CheckDims((*schedule)->Default());
  } else {
    kernel = OracleOf(spec)->Naive(spec);
  }
  // The virtual GPU runs PTX: that ptxas takes every family's kernels is tested with the families.
  std::string arch = target.profile.Arch();
  if (!target.real_index && arch.starts_with("sm_")) arch = "compute_" + arch.substr(3);
  ATUNNER_TRY(CompileOutcome outcome,
              compiler.Compile({kernel.source, EntriesOf(kernel.plan), arch}));
  if (!outcome.ok()) return Fail(ErrorCode::kInvalidInput, "does not compile: " + outcome.error);
  candidate.module = *std::move(outcome.module);
  candidate.plan = std::move(kernel.plan);
  return candidate;
}

Result<OperatorCaseResult> Verified(const KernelSpec& spec, const Target& target,
                                    Compiler& compiler, Judge& judge, Clock& clock, double limit) {
  OperatorCaseResult result;
  const double start = clock.Now();
  // first: it gives back what the last task had of the GPU
  ATUNNER_RETURN_IF_ERROR(judge.Begin({spec, 1, limit, /*reproducible=*/true}));
  const double begun = clock.Now();
  result.begin_seconds = begun - start;
  ATUNNER_TRY(const CandidateKernel candidate, CandidateFor(spec, target, compiler, result));
  result.compile_seconds = clock.Now() - begun;
  ATUNNER_TRY(
      const JudgeAnswer answer,
      judge.Examine(candidate, {.time = false, .thorough = false, .incumbent_ns = {}, .seed = 1}));
  result.verdict = std::string(Name(answer.verdict.kind));
  result.reason = answer.verdict.reason;
  // At the largest size: the few elements of smaller ones may all lie near the end of the type's
  // range, for example in products of a row of float16.
  const Dims* largest = nullptr;
  for (const CheckRecord& check : answer.verdict.checks | std::views::reverse) {
    if (check.check != "oracle" || check.family != "normal") continue;
    if (largest == nullptr) largest = &check.dims;
    if (check.dims != *largest) continue;
    result.error = std::max(result.error, check.error);
    result.honest = std::max(result.honest, check.honest);
  }
  // The norm of a few elements is no average: a gradient of attention with one key is exactly zero.
  const bool few = TotalsOf(spec, spec.dims).largest < kFewElements;
  if (result.passed() && !few && !(result.honest <= LargestHonest(spec))) {
    result.verdict = "inaccurate-plain-kernel";
    result.reason = fmt::format("errs by {:.2e} on normal inputs", result.honest);
  }
  return result;
}

/// Runs cases on all cores: a thread takes the next case, compiles it and has it judged by a judge
/// of its own.
class CaseRunner {
 public:
  /// `targets`: GPUs of one model, which share the cases.
  CaseRunner(std::vector<OperatorCase> cases, std::vector<Target> targets, Compiler& compiler,
             const OperatorTestRequest& request, Services& services, const EventSink& events,
             std::stop_token stop)
      : cases_(std::move(cases)),
        results_(cases_.size()),
        targets_(std::move(targets)),
        compiler_(compiler),
        request_(request),
        services_(services),
        events_(events),
        stop_(std::move(stop)) {}

  void OnAllCores() {
    start_ = services_.clock.Now();
    std::vector<std::jthread> threads;
    for (int i = 0; i < Threads(); ++i) {
      const Target& target = targets_[static_cast<size_t>(i) % targets_.size()];
      threads.emplace_back([&] { TakeCases(target); });
    }
  }

  std::vector<OperatorCase>& cases() { return cases_; }
  std::vector<std::optional<OperatorCaseResult>>& results() { return results_; }

 private:
  int Threads() const {
    // Judges on one GPU take turns and share its memory. A request may ask for more of them where
    // the GPU has much memory.
    constexpr int kMostToAGpu = 4;
    if (request_.parallel > 0) return request_.parallel;
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (!targets_[0].real_index) return cores;
    return std::min(cores, kMostToAGpu * static_cast<int>(targets_.size()));
  }

  bool TimeIsUp() const {
    return stop_.stop_requested() ||
           (request_.total_seconds > 0 && services_.clock.Now() - start_ > request_.total_seconds);
  }

  void TakeCases(const Target& target) {
    const auto judge = services_.devices.MakeJudge(target, request_.limit_seconds, true);
    for (size_t at = next_++; at < cases_.size() && !TimeIsUp(); at = next_++) {
      RunCase(at, target, *judge);
      Announce(at);
    }
  }

  void RunCase(size_t at, const Target& target, Judge& judge) {
    const double start = services_.clock.Now();
    const auto spec = SpecOf(cases_[at]);
    const auto verified = spec ? Verified(*spec, target, compiler_, judge, services_.clock,
                                          request_.limit_seconds)
                               : Result<OperatorCaseResult>(std::unexpected(spec.error()));
    OperatorCaseResult result = verified ? *verified : Refused(verified.error());
    result.seconds = services_.clock.Now() - start;
    results_[at] = std::move(result);
  }

  /// A failure is always announced, and progress after each 200 cases.
  void Announce(size_t at) {
    constexpr size_t kEvery = 200;
    const std::scoped_lock lock(mutex_);
    ++done_;
    if (!results_[at]->passed())
      events_(OperatorCaseEvent{
          fmt::format("{} {} {}: {} {}", cases_[at].shapes.name, Name(cases_[at].dtype),
                      cases_[at].shapes.text, results_[at]->verdict, results_[at]->reason),
          done_, cases_.size()});
    if (done_ % kEvery == 0) events_(OperatorCaseEvent{"", done_, cases_.size()});
  }

  std::vector<OperatorCase> cases_;
  std::vector<std::optional<OperatorCaseResult>> results_;
  std::vector<Target> targets_;
  Compiler& compiler_;
  const OperatorTestRequest& request_;
  Services& services_;
  const EventSink& events_;
  std::stop_token stop_;
  double start_ = 0;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  size_t done_ = 0;
};

}  // namespace

Result<OperatorTestResult> TestOperators(const OperatorTestRequest& request, Services& services,
                                         const EventSink& events, std::stop_token stop) {
  ATUNNER_TRY(const Target target, services.devices.Choose(request.target));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(request.limit_seconds));
  std::vector<OperatorCase> cases = OperatorCases(request);
  if (cases.empty())
    return Invalid("no operator is called like that", "request.only",
                   "`atunner operators` lists them");
  // The order is random, but the same each time: a limit of time then cuts off no operator as a
  // whole.
  std::ranges::shuffle(cases, std::minstd_rand(1));
  const DeviceSelection selection = target.real_index ? request.devices : DeviceSelection{};
  ATUNNER_TRY(const std::vector<Target> targets, services.devices.Select(target, selection));
  CaseRunner runner(std::move(cases), targets, *compiler, request, services, events,
                    std::move(stop));
  const double start = services.clock.Now();
  runner.OnAllCores();
  return OperatorTestResult{target.profile.name, target.evidence(), std::move(runner.cases()),
                            std::move(runner.results()), services.clock.Now() - start};
}

}  // namespace atunner::jobs
