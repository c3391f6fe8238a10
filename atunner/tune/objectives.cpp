#include "atunner/tune/objectives.h"

#include <algorithm>

#include "atunner/search/strategies/pareto.h"

namespace atunner {
namespace {

constexpr Objective kAll[] = {Objective::kTime, Objective::kMemory, Objective::kEnergy};

}  // namespace

std::string_view Name(Objective objective) {
  switch (objective) {
    case Objective::kTime:
      return "time";
    case Objective::kMemory:
      return "memory";
    case Objective::kEnergy:
      return "energy";
  }
  return "";
}

Result<std::vector<Objective>> ParseObjectives(std::string_view text) {
  std::vector<Objective> objectives;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string_view word = text.substr(from, comma - from);
    const auto* known = std::ranges::find(kAll, word, [](Objective one) { return Name(one); });
    if (known == std::end(kAll))
      return Invalid("unknown objective '" + std::string(word) + "'", "request.objective",
                     "use time, memory and energy");
    if (std::ranges::find(objectives, *known) != objectives.end())
      return Invalid("'" + std::string(word) + "' is there twice", "request.objective");
    objectives.push_back(*known);
    from = comma + 1;
  }
  return objectives;
}

std::optional<double> ValueOf(const Trial& trial, Objective objective) {
  const auto time = trial.ObjectiveNs();
  if (!time || objective == Objective::kTime) return time;
  if (objective == Objective::kEnergy) return trial.EnergyJoules();
  return static_cast<double>(std::max<int64_t>(1, trial.memory_bytes));
}

std::vector<double> ValuesOf(const Trial& trial, const std::vector<Objective>& objectives) {
  std::vector<double> values;
  for (Objective objective : objectives) {
    const auto value = ValueOf(trial, objective);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

double RelativeError(const Trial& trial) {
  if (!trial.measurement || !(trial.measurement->median_ns > 0)) return 0;
  return (trial.measurement->high_ns - trial.measurement->low_ns) /
         (2 * 1.96 * trial.measurement->median_ns);
}

int64_t MemoryOf(const CandidateKernel& candidate, const KernelSpec& spec) {
  const auto plan = Resolve(candidate.plan, spec.dims, spec.attributes);
  if (!plan) return 0;
  int64_t bytes = 0;
  for (const ConcreteWorkspace& workspace : plan->workspaces)
    bytes += static_cast<int64_t>(workspace.bytes);
  int64_t shared = 0;
  for (const ConcreteStep& step : plan->steps) {
    const auto& kernels = candidate.module.kernels;
    const auto kernel = std::ranges::find(kernels, step.entry, &KernelResources::entry);
    const int64_t fixed = kernel == kernels.end()
                              ? 0
                              : static_cast<int64_t>(kernel->static_shared_bytes);
    shared = std::max(shared, fixed + static_cast<int64_t>(step.shared_bytes));
  }
  return bytes + shared;
}

std::vector<size_t> FrontOf(const std::vector<Trial>& trials,
                            const std::vector<Objective>& objectives) {
  std::vector<std::vector<double>> points;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < trials.size(); ++i) {
    std::vector<double> values = ValuesOf(trials[i], objectives);
    if (values.empty() || trials[i].same_as != 0) continue;
    points.push_back(std::move(values));
    numbers.push_back(i);
  }
  std::vector<size_t> front;
  for (size_t i : ParetoFront(points)) front.push_back(numbers[i]);
  return front;
}

}  // namespace atunner
