// Plans random perfect packings, in which no byte is free at any time, and prints how many reach
// the capacity and in how many seconds. Build with -DATUNNER_BENCH=ON, run
// build/…/bench/memory_plans [seconds for each, 10].
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "atunner/planning/memory/memory_plan.h"
#include "atunner/planning/memory/packing_test.h"

namespace atunner::planning {
namespace {

struct Setting {
  size_t buffers;
  int64_t duration, capacity;
};

void Run(const Setting& setting, double seconds) {
  constexpr int kInstances = 11;
  Random random(setting.buffers + static_cast<uint64_t>(setting.duration));
  int solved = 0;
  double total = 0, longest = 0, worst = 1, greedy = 0;
  for (int i = 0; i < kInstances; ++i) {
    MemoryProblem problem;
    problem.buffers = GuillotinePacking(setting.buffers, setting.duration, setting.capacity,
                                        random);
    for (size_t j = 0; j < problem.buffers.size(); ++j) problem.ids.push_back(std::to_string(j));
    const auto start = std::chrono::steady_clock::now();
    const MemoryPlan plan = PlanBuffers(std::move(problem), 0, seconds, 1);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
                            .count();
    solved += plan.optimal() ? 1 : 0;
    total += took;
    longest = std::max(longest, took);
    worst = std::min(worst, plan.Utilization());
    greedy += static_cast<double>(plan.greedy_peak) / static_cast<double>(plan.bound) / kInstances;
  }
  fmt::print(
      "{:>4} buffers, {:>6} times, {:>10} bytes: {:>2} of {} at capacity, {:.2f} s in all, "
      "longest {:.2f} s, worst utilisation {:.2f} %, greedy {:.1f} % above\n",
      setting.buffers, setting.duration, setting.capacity, solved, kInstances, total, longest,
      100 * worst, 100 * (greedy - 1));
}

}  // namespace
}  // namespace atunner::planning

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  for (const size_t buffers : {150u, 250u, 350u, 450u})
    for (const auto& [duration, capacity] :
         {std::pair{100'000L, 1L << 30}, {1000L, 1L << 20}, {100L, 1L << 20}, {40L, 400L}})
      atunner::planning::Run({buffers, duration, capacity}, seconds);
  return 0;
}
