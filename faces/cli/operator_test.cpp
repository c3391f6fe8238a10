// `test --operators`: every operator and gradient, in every type, at three shapes, compiled, run
// and verified.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/codegen/template/family.h"
#include "atunner/model/json/json.h"
#include "faces/cli/cli.h"
#include "faces/cli/field_paths.h"
#include "faces/cli/operator_cases.h"

namespace atunner::cli {
namespace {

struct CaseResult {
  std::string kernel;   ///< the family whose default configuration was run, or "plain"
  std::string verdict;  ///< of verdict.def, or "error"
  std::string reason;
  double error = 0;   ///< relative, on normal inputs
  double honest = 0;  ///< the plain kernel's on normal inputs
  double compile_seconds = 0;
  double begin_seconds = 0;  ///< until the runner is ready
  double seconds = 0;        ///< with all that
  bool passed() const { return verdict == "correct"; }
};

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

CaseResult Refused(const Error& error) {
  return {.kernel = "none", .verdict = "error", .reason = WithFlags(error).ToString()};
}

/// The first family's default configuration, or else the plain kernels.
Result<CandidateKernel> CandidateFor(const KernelSpec& spec, const Target& target,
                                     Compiler& compiler, CaseResult& result) {
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

Result<CaseResult> Verified(const KernelSpec& spec, const Target& target, Compiler& compiler,
                            Judge& judge, double limit) {
  CaseResult result;
  const double start = SystemClock().Now();
  // first: it gives back what the last task had of the GPU
  ATUNNER_RETURN_IF_ERROR(judge.Begin({spec, 1, limit}));
  const double begun = SystemClock().Now();
  result.begin_seconds = begun - start;
  ATUNNER_TRY(const CandidateKernel candidate, CandidateFor(spec, target, compiler, result));
  result.compile_seconds = SystemClock().Now() - begun;
  ATUNNER_TRY(
      const JudgeAnswer answer,
      judge.Examine(candidate, {.time = false, .thorough = false, .incumbent_ns = {}, .seed = 1}));
  result.verdict = std::string(Name(answer.verdict.kind));
  result.reason = answer.verdict.reason;
  for (const CheckRecord& check : answer.verdict.checks) {
    if (check.check != "oracle" || check.family != "normal") continue;
    result.error = std::max(result.error, check.error);
    result.honest = std::max(result.honest, check.honest);
  }
  if (result.passed() && !(result.honest <= LargestHonest(spec))) {
    result.verdict = "inaccurate-plain-kernel";
    result.reason = fmt::format("errs by {:.2e} on normal inputs", result.honest);
  }
  return result;
}

/// Cases on all cores: a thread takes the next one, compiles it and has it judged by a runner of
/// its own.
class Run {
 public:
  /// `targets`: GPUs of one kind, which share the cases.
  Run(std::vector<OperatorCase> cases, std::vector<Target> targets, Compiler& compiler,
      const OperatorTestFlags& flags)
      : cases_(std::move(cases)),
        results_(cases_.size()),
        targets_(std::move(targets)),
        compiler_(compiler),
        flags_(flags) {}

  void OnAllCores(bool quiet) {
    // Runners on one GPU take turns, and have its memory together: more go by --jobs where there is
    // much of it.
    constexpr int kMostToAGpu = 4;
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int usual = targets_[0].real_index
                          ? std::min(cores, kMostToAGpu * static_cast<int>(targets_.size()))
                          : cores;
    const int jobs = flags_.jobs > 0 ? flags_.jobs : usual;
    const double start = SystemClock().Now();
    std::vector<std::jthread> threads;
    for (int i = 0; i < jobs; ++i) {
      threads.emplace_back([&, i] {
        const Target& target = targets_[static_cast<size_t>(i) % targets_.size()];
        const auto judge = MakeRunner(target, flags_.limit_seconds, true);
        for (size_t at = next_++; at < cases_.size(); at = next_++) {
          if (flags_.total_seconds > 0 && SystemClock().Now() - start > flags_.total_seconds)
            return;
          One(at, target, *judge);
          Tell(at, quiet);  // what failed is never passed over
        }
      });
    }
  }

  const std::vector<OperatorCase>& cases() const { return cases_; }
  /// nullopt for cases that there was no time for.
  const std::vector<std::optional<CaseResult>>& results() const { return results_; }

 private:
  void One(size_t at, const Target& target, Judge& judge) {
    const double start = SystemClock().Now();
    const auto spec = SpecOf(cases_[at]);
    const auto verified = spec ? Verified(*spec, target, compiler_, judge, flags_.limit_seconds)
                               : Result<CaseResult>(std::unexpected(spec.error()));
    CaseResult result = verified ? *verified : Refused(verified.error());
    result.seconds = SystemClock().Now() - start;
    results_[at] = std::move(result);
  }

  void Tell(size_t at, bool quiet) {
    const std::scoped_lock lock(mutex_);
    ++done_;
    if (!results_[at]->passed())
      fmt::print(stderr, "{} {} {}: {} {}\n", cases_[at].shapes.name, Name(cases_[at].dtype),
                 cases_[at].shapes.text, results_[at]->verdict, results_[at]->reason);
    if (!quiet && done_ % 200 == 0) fmt::print(stderr, "{} of {} tasks\n", done_, cases_.size());
  }

  std::vector<OperatorCase> cases_;
  std::vector<std::optional<CaseResult>> results_;
  std::vector<Target> targets_;
  Compiler& compiler_;
  const OperatorTestFlags& flags_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  size_t done_ = 0;
};

/// What the table says of one operator in one type.
struct Cell {
  int passed = 0;
  int all = 0;
  double error = 0;
};
struct Line {
  std::string kernels;
  std::map<DType, Cell> cells;
};

std::map<std::string, Line> LinesOf(const Run& run) {
  std::map<std::string, Line> lines;
  for (size_t i = 0; i < run.cases().size(); ++i) {
    const auto& result = run.results()[i];
    if (!result) continue;
    for (const Operator* op : run.cases()[i].operators) {
      Line& line = lines[op->info().name];
      Cell& cell = line.cells[run.cases()[i].dtype];
      cell.passed += result->passed();
      ++cell.all;
      cell.error = std::max(cell.error, result->error);
      if (line.kernels.find(result->kernel) == std::string::npos)
        line.kernels += (line.kernels.empty() ? "" : ", ") + result->kernel;
    }
  }
  return lines;
}

void PrintTable(const std::map<std::string, Line>& lines) {
  for (const auto& [name, line] : lines) {
    std::string types;
    for (const auto& [dtype, cell] : line.cells)
      types += fmt::format("  {} {}/{} {:.0e}", Name(dtype), cell.passed, cell.all, cell.error);
    fmt::print("{:<30} {:<20}{}\n", name, line.kernels, types);
  }
}

struct Counts {
  size_t operators = 0;
  size_t cases = 0;  ///< operators × types × shapes
  size_t failed = 0;
  size_t left = 0;  ///< no time for them
};

Counts CountsOf(const Run& run, size_t operators) {
  Counts counts{.operators = operators};
  for (size_t i = 0; i < run.cases().size(); ++i) {
    const size_t many = run.cases()[i].operators.size();
    counts.cases += many;
    if (!run.results()[i]) counts.left += many;
    if (run.results()[i] && !run.results()[i]->passed()) counts.failed += many;
  }
  return counts;
}

Json RowsOf(const Run& run) {
  Json rows = Json::array();
  for (size_t i = 0; i < run.cases().size(); ++i) {
    const OperatorCase& one = run.cases()[i];
    const auto& result = run.results()[i];
    if (!result) continue;
    Json names = Json::array();
    for (const Operator* op : one.operators) names.push_back(op->info().name);
    rows.push_back({{"operators", names},
                    {"dtype", Name(one.dtype)},
                    {"size", one.shapes.size},
                    {"shape", one.shapes.text},
                    {"kernel", result->kernel},
                    {"verdict", result->verdict},
                    {"reason", result->reason},
                    {"error", result->error},
                    {"honest", result->honest},
                    {"compile_seconds", result->compile_seconds},
                    {"begin_seconds", result->begin_seconds},
                    {"seconds", result->seconds}});
  }
  return rows;
}

}  // namespace

Result<int> TestOperators(const OperatorTestFlags& flags, const Common& common) {
  ATUNNER_TRY(const Target target, ChooseTarget(flags.target, flags.force_virtual));
  ATUNNER_TRY(const auto compiler, OpenCompiler(flags.limit_seconds));
  ATUNNER_TRY(std::vector<OperatorCase> cases, OperatorCases(flags));
  if (cases.empty())
    return Invalid("no operator is called like that", "--only", "`atunner operators` lists them");
  // In an order of no meaning, and the same each time: what a limit of time cuts off is then no
  // operator as a whole.
  std::ranges::shuffle(cases, std::minstd_rand(1));
  ATUNNER_TRY(const std::vector<Target> targets,
              DevicesLike(target, target.real_index ? flags.devices : ""));
  Run run(std::move(cases), targets, *compiler, flags);
  const double start = SystemClock().Now();
  run.OnAllCores(common.quiet || common.json);
  const double seconds = SystemClock().Now() - start;
  const auto lines = LinesOf(run);
  const Counts counts = CountsOf(run, lines.size());
  if (common.json) {
    PrintJson({{"device", target.profile.name},
               {"evidence", Name(target.evidence())},
               {"operators", counts.operators},
               {"cases", counts.cases},
               {"failed", counts.failed},
               {"not_run", counts.left},
               {"seconds", seconds},
               {"rows", RowsOf(run)}});
  } else {
    PrintTable(lines);
    fmt::print(
        "{} operators and gradients, {} cases (operator × type × shape) on {}{}: {} failed{}, "
        "{:.0f} s\n",
        counts.operators, counts.cases, target.profile.name, target.real_index ? "" : " (virtual)",
        counts.failed,
        counts.left > 0 ? fmt::format(", {} not run for want of time", counts.left) : "", seconds);
  }
  return counts.failed + counts.left > 0 ? 1 : 0;
}

}  // namespace atunner::cli
