// `memory plan`: addresses for buffers with known lifetimes; `memory serve`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "atunner/planning/memory/memory_plan.h"
#include "faces/cli/output/render.h"
#include "faces/cli/planning/memory_serve.h"
#include "faces/cli/planning/planning_verbs.h"

namespace atunner::cli {
namespace {

struct MemoryFlags {
  std::string what;
  std::string file;
  std::string capacity;
  std::string time = "10s";
  std::string out;
  int device = -1;
  uint64_t seed = 1;
};

/// The exit code when the plan does not fit into --capacity.
constexpr int kDoesNotFit = 1;

using Units = std::initializer_list<std::pair<std::string_view, double>>;

/// "80GB" with the units given; the first unit is taken where there is none.
Result<double> Quantity(const std::string& text, const std::string& flag, Units units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  std::string known;
  for (const auto& [name, factor] : units) {
    if (error == std::errc() && number > 0 && (unit == name || unit.empty()))
      return number * factor;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return Invalid(fmt::format("'{}' is no amount", text), flag,
                 "a number above 0 and one of " + known);
}

void Print(const planning::MemoryPlan& plan, const planning::MemoryPlanRequest& request) {
  fmt::print("{}: {} buffers\n", request.file.string(), plan.problem.buffers.size());
  for (const std::string& note : plan.problem.notes) fmt::print("note: {}\n", note);
  fmt::print("peak         {:>16} bytes  ({} after {:.2f} s)\n", plan.placement.peak, plan.found_by,
             plan.seconds);
  fmt::print("lower bound  {:>16} bytes\n", plan.bound);
  fmt::print("utilisation  {:>15.2f} %  {}\n", 100 * plan.Utilization(),
             plan.optimal() ? "(optimal)" : "");
  fmt::print("best order   {:>16} bytes  (without search)\n", plan.greedy_peak);
  for (const std::string& line : planning::Explain(plan)) fmt::print("{}\n", line);
  if (request.capacity == 0) return;
  const char* const verdict = plan.placement.peak <= request.capacity ? "fits"
                              : plan.bound > request.capacity
                                  ? "no placement fits, as the bound says"
                                  : "does not fit";
  fmt::print("capacity     {:>16} bytes: {}\n", request.capacity, verdict);
}

Result<int> PlanMemory(const MemoryFlags& flags, const Context& context) {
  if (flags.what == "serve") return ServeMemory(flags.out, context);
  if (flags.file.empty())
    return Invalid("no file of buffers is given", "memory plan", "atunner memory plan trace.json");
  planning::MemoryPlanRequest request{
      .file = flags.file, .device = flags.device, .seed = flags.seed};
  if (!flags.capacity.empty()) {
    ATUNNER_TRY(const double bytes, Quantity(flags.capacity, "--capacity",
                                             {{"B", 1},
                                              {"kB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"TB", 1e12},
                                              {"KiB", 0x1p10},
                                              {"MiB", 0x1p20},
                                              {"GiB", 0x1p30}}));
    request.capacity = static_cast<int64_t>(std::min(bytes, 0x1p60));
  }
  ATUNNER_TRY(request.seconds,
              Quantity(flags.time, "--time", {{"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}}));
  ATUNNER_TRY(const planning::MemoryPlan plan, planning::PlanMemory(request));
  if (!flags.out.empty())
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.out, planning::PlacementCsv(plan)));
  if (context.common.json)
    PrintJson(planning::ToJson(plan));
  else
    Print(plan, request);
  const bool fits = request.capacity == 0 || plan.placement.peak <= request.capacity;
  return fits ? 0 : kDoesNotFit;
}

}  // namespace

void AddMemory(VerbList& verbs) {
  const auto flags = std::make_shared<MemoryFlags>();
  CLI::App* verb = verbs.Add("memory", "plan: addresses for buffers; serve: PyTorch's GPU memory",
                             [flags](const Context& c) { return PlanMemory(*flags, c); });
  verb->footer(
      "atunner memory plan buffers.csv --capacity 1MiB --out placement.csv\n"
      "atunner memory plan snapshot.pickle --time 30s\n"
      "atunner memory plan trace.json.gz --device 0\n"
      "atunner memory serve -- python3 train.py\n"
      "The exit status is 1 if the plan does not fit into --capacity.");
  verb->add_option("what", flags->what, "plan or serve")
      ->required()
      ->check(CLI::IsMember({"plan", "serve"}));
  verb->add_option("file", flags->file,
                   "CSV or JSON of buffers (id, lower, upper, size), a snapshot of PyTorch's "
                   "allocator, or a trace with memory events");
  verb->add_option("--capacity", flags->capacity,
                   "memory to fit into (80GB, 512MiB); the search ends when it does");
  verb->add_option("--time", flags->time, "longest search: 10s, 500ms, 2min");
  verb->add_option("--out", flags->out,
                   "plan: write the placement as CSV; serve: a folder for the allocator");
  verb->add_option("--device", flags->device, "GPU of a trace or snapshot");
  verb->add_option("--seed", flags->seed, "of the search");
}

}  // namespace atunner::cli
