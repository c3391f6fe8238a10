#include "atunner/planning/memory/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "atunner/planning/memory/buffer_files.h"
#include "atunner/planning/memory/greedy_placement.h"
#include "atunner/planning/memory/order_search.h"
#include "atunner/planning/memory/skyline_search.h"

namespace atunner::planning {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Above this the exact search looks at too few skylines to help.
constexpr size_t kMostForSearch = 4000;

/// Buffers without a common moment with any of another group.
std::vector<std::vector<uint32_t>> Components(const std::vector<Buffer>& buffers) {
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return buffers[i].begin; });
  std::vector<std::vector<uint32_t>> components;
  int64_t end = std::numeric_limits<int64_t>::min();
  for (const uint32_t i : order) {
    if (components.empty() || buffers[i].begin >= end) components.emplace_back();
    components.back().push_back(i);
    end = std::max(end, buffers[i].end);
  }
  return components;
}

class Planner {
 public:
  Planner(std::vector<Buffer> buffers, int64_t goal, double seconds, uint64_t seed)
      : buffers_(std::move(buffers)),
        goal_(goal),
        seed_(seed),
        start_(SteadyClock::now()),
        seconds_(seconds) {}

  void Run() {
    TryOrders();
    greedy_peak_ = best_.peak;
    if (best_.peak <= goal_) return;
    if (buffers_.size() <= kMostForSearch) {
      Search(goal_, 0.5);
      Bisect();
    }
    if (best_.peak > goal_) ImproveOrders();
  }

  const Placement& best() const { return best_; }
  int64_t greedy_peak() const { return greedy_peak_; }
  const std::string& found_by() const { return found_by_; }
  double found_after() const { return found_after_; }

 private:
  double Elapsed() const {
    return std::chrono::duration<double>(SteadyClock::now() - start_).count();
  }
  StopFunction StopAt(double seconds) const {
    return [this, seconds] { return Elapsed() >= seconds; };
  }

  void Offer(Placement placement, const std::string& by) {
    if (!best_.offsets.empty() && placement.peak >= best_.peak) return;
    best_ = std::move(placement);
    found_by_ = by;
    found_after_ = Elapsed();
  }

  void TryOrders() {
    static constexpr const char* kNames[] = {
        "size", "lifetime", "area", "size and area", "length and area", "last begin", "last end"};
    size_t number = 0;
    for (std::vector<uint32_t>& order : GreedyOrders(buffers_)) {
      for (const Fit fit : {Fit::kBest, Fit::kFirst}) {
        if (!best_.offsets.empty() && (best_.peak <= goal_ || Elapsed() >= seconds_)) return;
        Placement placement = PlaceInOrder(buffers_, order, fit);
        if (best_.offsets.empty() || placement.peak < best_.peak) best_order_ = order;
        Offer(std::move(placement), fmt::format("order by {}", kNames[number]));
      }
      ++number;
    }
  }

  /// True if a placement with this peak was found. `share` of the remaining time is used.
  bool Search(int64_t capacity, double share) {
    const double now = Elapsed();
    const double until = now + share * std::max(0.0, seconds_ - now);
    const SkylineResult result = SearchCapacity(
        buffers_, capacity, std::numeric_limits<uint64_t>::max(), seed_, StopAt(until));
    if (result.end != SearchEnd::kFound) return false;
    const int64_t peak = PeakOf(buffers_, result.offsets);
    Offer({result.offsets, peak}, "skyline search");
    return true;
  }

  void Bisect() {
    int64_t low = goal_;
    while (best_.peak > goal_ && best_.peak - low > best_.peak / 1000 && Elapsed() < seconds_) {
      const int64_t middle = low + (best_.peak - low) / 2;
      if (!Search(middle, 0.2)) low = middle;
    }
  }

  void ImproveOrders() {
    Offer(ImproveOrder(buffers_, best_order_, goal_, std::numeric_limits<uint64_t>::max(), seed_,
                       StopAt(seconds_)),
          "search over orders");
  }

  std::vector<Buffer> buffers_;
  int64_t goal_;
  uint64_t seed_;
  SteadyClock::time_point start_;
  double seconds_;
  Placement best_;
  std::vector<uint32_t> best_order_;
  int64_t greedy_peak_ = 0;
  std::string found_by_;
  double found_after_ = 0;
};

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

}  // namespace

double MemoryPlan::Utilization() const {
  return placement.peak == 0 ? 1 : static_cast<double>(bound) / static_cast<double>(placement.peak);
}

MemoryPlan PlanBuffers(MemoryProblem problem, int64_t goal, double seconds, uint64_t seed) {
  MemoryPlan plan;
  plan.bound = LowerBound(problem.buffers);
  plan.placement.offsets.assign(problem.buffers.size(), 0);
  const auto components = Components(problem.buffers);
  double left = seconds;
  double latest = 0;  // the longest search names what found the plan
  for (size_t i = 0; i < components.size(); ++i) {
    std::vector<Buffer> buffers;
    for (const uint32_t index : components[i]) buffers.push_back(problem.buffers[index]);
    const double share = left / static_cast<double>(components.size() - i);
    const auto start = SteadyClock::now();
    Planner planner(buffers, std::max(goal, plan.bound), share, seed);
    planner.Run();
    left -= std::chrono::duration<double>(SteadyClock::now() - start).count();
    for (size_t j = 0; j < buffers.size(); ++j)
      plan.placement.offsets[components[i][j]] = planner.best().offsets[j];
    if (plan.found_by.empty() || planner.found_after() > latest) {
      plan.found_by = planner.found_by();
      latest = planner.found_after();
    }
    plan.placement.peak = std::max(plan.placement.peak, planner.best().peak);
    plan.greedy_peak = std::max(plan.greedy_peak, planner.greedy_peak());
    plan.seconds += planner.found_after();
  }
  plan.problem = std::move(problem);
  return plan;
}

Result<MemoryPlan> PlanMemory(const MemoryPlanRequest& request) {
  if (request.seconds <= 0) return Invalid("must be above 0", "request.time");
  if (request.capacity < 0) return Invalid("must not be negative", "request.capacity");
  ATUNNER_TRY(MemoryProblem problem, ReadBuffers(request.file, request.device));
  if (auto checked = CheckBuffers(problem); !checked) {
    checked.error().where = request.file.string();
    return std::unexpected(checked.error());
  }
  return PlanBuffers(std::move(problem), request.capacity, request.seconds, request.seed);
}

std::string PlacementCsv(const MemoryPlan& plan) {
  std::string csv = "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < plan.problem.buffers.size(); ++i) {
    const Buffer& buffer = plan.problem.buffers[i];
    csv += fmt::format("{},{},{},{},{}\n", plan.problem.ids[i], buffer.begin, buffer.end,
                       buffer.size, plan.placement.offsets[i]);
  }
  return csv;
}

std::vector<std::string> Explain(const MemoryPlan& plan) {
  std::vector<std::string> lines;
  const Observed& seen = plan.problem.observed;
  if (seen.peak_reserved > 0) {
    const int64_t idle = seen.peak_reserved - seen.live_at_reserved;
    lines.push_back(fmt::format(
        "{} held {:.3f} GB when {:.3f} GB were in use: {:.3f} GB ({:.0f} %) were free pieces "
        "between live buffers or cached blocks",
        seen.allocator, Gigabytes(seen.peak_reserved), Gigabytes(seen.live_at_reserved),
        Gigabytes(idle),
        100 * static_cast<double>(idle) / static_cast<double>(seen.peak_reserved)));
    lines.push_back(fmt::format("planned placement needs {:.3f} GB: {:.1f} % less",
                                Gigabytes(plan.placement.peak),
                                100 * (1 - static_cast<double>(plan.placement.peak) /
                                               static_cast<double>(seen.peak_reserved))));
  }
  const int64_t lost = plan.placement.peak - plan.bound;
  if (lost > 0)
    lines.push_back(fmt::format(
        "at most {:.3f} GB of the plan are lost to fragmentation: the bound counts live bytes only "
        "and may itself be out of reach",
        Gigabytes(lost)));
  return lines;
}

Json ToJson(const MemoryPlan& plan) {
  const Observed& seen = plan.problem.observed;
  Json offsets = Json::array();
  for (size_t i = 0; i < plan.problem.buffers.size(); ++i)
    offsets.push_back({{"id", plan.problem.ids[i]},
                       {"size", plan.problem.buffers[i].size},
                       {"offset", plan.placement.offsets[i]}});
  return {{"buffers", plan.problem.buffers.size()},
          {"peak", plan.placement.peak},
          {"bound", plan.bound},
          {"optimal", plan.optimal()},
          {"utilization", plan.Utilization()},
          {"greedy_peak", plan.greedy_peak},
          {"found_by", plan.found_by},
          {"seconds", plan.seconds},
          {"observed_reserved", seen.peak_reserved},
          {"observed_live", seen.live_at_reserved},
          {"explanation", Explain(plan)},
          {"notes", plan.problem.notes},
          {"placement", offsets}};
}

}  // namespace atunner::planning
