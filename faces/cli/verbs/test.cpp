// `test`: compiles, runs and verifies one kernel per operator, or with --operators every operator
// and gradient in every type.
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "atunner/jobs/operators/operator_test.h"
#include "atunner/jobs/operators/self_test.h"
#include "atunner/operators/operator.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/flags/parse.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

Json SelfTestJson(const jobs::SelfTestResult& result) {
  Json rows = Json::array();
  for (const jobs::SelfTestRow& row : result.rows)
    rows.push_back({{"operator", row.operator_name},
                    {"dtype", Name(row.dtype)},
                    {"kernel", row.kernel},
                    {"verdict", Name(row.verdict.kind)},
                    {"reason", row.verdict.reason},
                    {"error", row.verdict.WorstError()}});
  return {{"device", result.gpu},
          {"evidence", Name(result.evidence)},
          {"failed", result.failed},
          {"rows", rows}};
}

Result<int> SelfTest(const std::string& target, const Context& context) {
  Machine machine(context.common.store);
  const bool json = context.common.json;
  const auto print = [&](const jobs::SelfTestRow& row) {
    if (json) return;
    fmt::print("{:<20} {:<9} {:<13} {} {}\n", row.operator_name, Name(row.dtype), row.kernel,
               Name(row.verdict.kind), row.verdict.reason);
  };
  ATUNNER_TRY(const jobs::SelfTestResult result,
              jobs::SelfTest({target, false}, machine.services(), print));
  if (json)
    PrintJson(SelfTestJson(result));
  else
    fmt::print("{} failed\n", result.failed);
  return result.failed ? 1 : 0;
}

/// One operator in one type.
struct Cell {
  int passed = 0;
  int all = 0;
  double error = 0;  ///< the largest
};
/// One operator: a line of the table.
struct Line {
  std::string kernels;
  std::map<DType, Cell> cells;
};

std::map<std::string, Line> LinesOf(const jobs::OperatorTestResult& test) {
  std::map<std::string, Line> lines;
  for (size_t i = 0; i < test.cases.size(); ++i) {
    const auto& result = test.results[i];
    if (!result) continue;
    for (const Operator* op : test.cases[i].operators) {
      Line& line = lines[op->info().name];
      Cell& cell = line.cells[test.cases[i].dtype];
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
  size_t not_run = 0;  ///< there was no time for them
};

Counts CountsOf(const jobs::OperatorTestResult& test, size_t operators) {
  Counts counts{.operators = operators};
  for (size_t i = 0; i < test.cases.size(); ++i) {
    const size_t many = test.cases[i].operators.size();
    counts.cases += many;
    if (!test.results[i]) counts.not_run += many;
    if (test.results[i] && !test.results[i]->passed()) counts.failed += many;
  }
  return counts;
}

Json CaseJson(const jobs::OperatorCase& one, const jobs::OperatorCaseResult& result) {
  Json names = Json::array();
  for (const Operator* op : one.operators) names.push_back(op->info().name);
  return {{"operators", names},
          {"dtype", Name(one.dtype)},
          {"size", one.shapes.size},
          {"shape", one.shapes.text},
          {"kernel", result.kernel},
          {"verdict", result.verdict},
          {"reason", WithFlags(result.reason)},
          {"error", result.error},
          {"honest", result.honest},
          {"compile_seconds", result.compile_seconds},
          {"begin_seconds", result.begin_seconds},
          {"seconds", result.seconds}};
}

void PrintTestJson(const jobs::OperatorTestResult& test, const Counts& counts) {
  Json rows = Json::array();
  for (size_t i = 0; i < test.cases.size(); ++i) {
    if (test.results[i]) rows.push_back(CaseJson(test.cases[i], *test.results[i]));
  }
  PrintJson({{"device", test.gpu},
             {"evidence", Name(test.evidence)},
             {"operators", counts.operators},
             {"cases", counts.cases},
             {"failed", counts.failed},
             {"not_run", counts.not_run},
             {"seconds", test.seconds},
             {"rows", rows}});
}

void PrintCounts(const jobs::OperatorTestResult& test, const Counts& counts) {
  const bool real = test.evidence == Evidence::kMeasured;
  fmt::print(
      "{} operators and gradients, {} cases (operator × type × shape) on {}{}: {} failed{}, "
      "{:.0f} s\n",
      counts.operators, counts.cases, test.gpu, real ? "" : " (virtual)", counts.failed,
      counts.not_run > 0 ? fmt::format(", {} not run for want of time", counts.not_run) : "",
      test.seconds);
}

/// `test --operators`.
struct TestFlags {
  bool operators = false;  ///< every operator; without it, one per family
  bool full = false;
  bool apart = false;
  std::vector<std::string> only;
  std::vector<std::string> dtypes;
  std::string target;  ///< empty: A100, with --full the GPU here
  std::string devices;
  bool force_virtual = false;
  int parallel = 0;
  double limit_seconds = 60;
  double total_seconds = 0;
};

Result<jobs::OperatorTestRequest> RequestOf(const TestFlags& flags) {
  jobs::OperatorTestRequest request;
  request.full = flags.full;
  request.apart = flags.apart;
  request.only = flags.only;
  for (const std::string& name : flags.dtypes) {
    ATUNNER_TRY(const DType dtype, ParseDTypeFlag(name));
    request.dtypes.push_back(dtype);
  }
  request.target = {flags.target, flags.force_virtual};
  ATUNNER_TRY(request.devices, ParseDevices(flags.devices));
  request.parallel = flags.parallel;
  request.limit_seconds = flags.limit_seconds;
  request.total_seconds = flags.total_seconds;
  return request;
}

Result<int> TestOperators(const TestFlags& flags, const Context& context) {
  ATUNNER_TRY(const jobs::OperatorTestRequest request, RequestOf(flags));
  const Common& common = context.common;
  const bool quiet = common.quiet || common.json;
  const jobs::EventSink events = [&](const jobs::Event& event) {
    const auto* one = std::get_if<jobs::OperatorCaseEvent>(&event);
    if (one == nullptr) return;
    if (!one->failure.empty())
      fmt::print(stderr, "{}\n", WithFlags(one->failure));
    else if (!quiet)
      fmt::print(stderr, "{} of {} tasks\n", one->done, one->all);
  };
  Machine machine(common.store);
  ATUNNER_TRY(const jobs::OperatorTestResult test,
              jobs::TestOperators(request, machine.services(), events, InterruptToken()));
  const auto lines = LinesOf(test);
  const Counts counts = CountsOf(test, lines.size());
  if (common.json) {
    PrintTestJson(test, counts);
  } else {
    PrintTable(lines);
    PrintCounts(test, counts);
  }
  return counts.failed + counts.not_run > 0 ? 1 : 0;
}

Result<int> Test(TestFlags flags, const Context& context) {
  if (flags.target.empty()) flags.target = flags.full ? "auto" : "A100";
  return flags.operators ? TestOperators(flags, context) : SelfTest(flags.target, context);
}

void AddScope(CLI::App* verb, CLI::Option* all, TestFlags& flags) {
  verb->add_flag("--full", flags.full, "at sizes for a GPU")->needs(all);
  verb->add_option("--only", flags.only, "operators whose names contain one of these")
      ->needs(all)
      ->delimiter(',');
  verb->add_option("--dtype", flags.dtypes, "of these types alone")->needs(all)->delimiter(',');
  verb->add_flag("--apart", flags.apart, "pointwise operators one by one, not twelve to a task")
      ->needs(all);
}

void AddResources(CLI::App* verb, CLI::Option* all, TestFlags& flags) {
  verb->add_flag("--virtual", flags.force_virtual,
                 "on the virtual GPU, even if the GPU is in this machine")
      ->needs(all);
  verb->add_option("--devices", flags.devices,
                   "GPUs that share the tasks: all, or their numbers (0,1)")
      ->needs(all);
  verb->add_option("--jobs", flags.parallel,
                   "tasks at a time; 0 = one per core, at most four to a GPU")
      ->needs(all)
      ->check(CLI::Range(0, 1024));
  verb->add_option("--limit", flags.limit_seconds, "seconds that one task may take")
      ->needs(all)
      ->check(Positive());
  verb->add_option("--seconds", flags.total_seconds,
                   "what is not begun by then is not run; 0 = no limit")
      ->needs(all)
      ->check(NotNegative());
}

}  // namespace

void AddTest(VerbList& verbs) {
  const auto flags = std::make_shared<TestFlags>();
  CLI::App* verb = verbs.Add("test",
                             "compile, run and verify one kernel per operator on this machine",
                             [flags](const Context& c) { return Test(*flags, c); });
  verb->add_option("--target-gpu", flags->target,
                   "GPU to test for, or auto; without it A100, with --full auto");
  CLI::Option* all = verb->add_flag(
      "--operators", flags->operators,
      "every operator and gradient, in every type, at three shapes each");
  AddScope(verb, all, *flags);
  AddResources(verb, all, *flags);
}

}  // namespace atunner::cli
