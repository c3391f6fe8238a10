#include "atunner/planning/parallel/parallel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace atunner::planning {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Partial answers of a stage that are kept: enough for all sums of a few kinds of layers. With
/// more than that every second one is dropped, and the answer is near the best.
constexpr size_t kMostPartial = 512;

/// Layers of which none needs more than `most_peak` while it is recomputed, so that the stage fits,
/// for the least time: exact, by the Pareto front of time and freed memory.
std::optional<std::vector<bool>> RecomputedBelow(const CostModel& costs, size_t layers,
                                                 size_t first, size_t last, int stage,
                                                 double capacity, double most_peak) {
  struct Partial {
    double us = 0, freed = 0;
    std::vector<bool> chosen;
  };
  std::vector<Partial> front = {{0, 0, std::vector<bool>(layers)}};
  for (size_t l = first; l < last; ++l) {
    const double us = costs.RecomputeUs(l), freed = costs.FreedBytes(l, stage);
    if (freed <= 0 || costs.PeakBytes(l) > most_peak) continue;
    const size_t count = front.size();
    for (size_t i = 0; i < count; ++i) {
      Partial with = front[i];
      with.us += us;
      with.freed += freed;
      with.chosen[l] = true;
      front.push_back(std::move(with));
    }
    std::ranges::stable_sort(front, [](const Partial& a, const Partial& b) {
      return a.us != b.us ? a.us < b.us : a.freed > b.freed;
    });
    double most = -1;
    std::erase_if(front, [&](const Partial& partial) {
      if (partial.freed <= most) return true;
      most = partial.freed;
      return false;
    });
    size_t at = 0;
    if (front.size() > kMostPartial)
      std::erase_if(front, [&](const Partial&) { return ++at % 2 == 0 && at != front.size(); });
  }
  for (const Partial& partial : front)
    if (costs.Stage(first, last, stage, partial.chosen).bytes <= capacity) return partial.chosen;
  return std::nullopt;
}

/// The same for any peak. A stage's memory has the largest peak of its recomputed layers, so each
/// is tried as the limit.
std::optional<std::vector<bool>> Recomputed(const CostModel& costs, size_t layers, size_t first,
                                            size_t last, int stage, double capacity) {
  const std::vector<bool> none(layers);
  if (costs.Stage(first, last, stage, none).bytes <= capacity) return none;
  std::set<double> peaks;
  for (size_t l = first; l < last; ++l) peaks.insert(costs.PeakBytes(l));
  std::optional<std::vector<bool>> best;
  double least = kNever;
  for (const double peak : peaks) {
    auto chosen = RecomputedBelow(costs, layers, first, last, stage, capacity, peak);
    if (!chosen) continue;
    const double us = costs.Stage(first, last, stage, *chosen).us;
    if (us < least) best = std::move(chosen);
    least = std::min(least, us);
  }
  return best;
}

/// The stages so far of a partial division of the layers.
struct Division {
  double slowest = 0, sum = 0, exposed = 0;
  std::vector<PlannedStage> stages;

  bool NoBetterThan(const Division& other) const {
    return slowest >= other.slowest && sum >= other.sum && exposed >= other.exposed;
  }
};

void KeepBest(std::vector<Division>& divisions, Division division) {
  for (const Division& other : divisions)
    if (division.NoBetterThan(other)) return;
  std::erase_if(divisions, [&](const Division& other) { return other.NoBetterThan(division); });
  divisions.push_back(std::move(division));
}

/// Divides the layers among the stages, one stage after the other.
class Divider {
 public:
  Divider(const CostModel& costs, size_t layers, int stages, double capacity)
      : costs_(costs), layers_(layers), stages_(static_cast<size_t>(stages)), capacity_(capacity) {}

  std::vector<Division> Best() {
    // reached[l]: divisions of the first l layers among the stages so far.
    std::vector<std::vector<Division>> reached(layers_ + 1);
    reached[0].emplace_back();
    for (size_t stage = 0; stage < stages_; ++stage) reached = Next(reached, stage);
    return reached[layers_];
  }

 private:
  std::vector<std::vector<Division>> Next(const std::vector<std::vector<Division>>& reached,
                                          size_t stage) const {
    std::vector<std::vector<Division>> next(layers_ + 1);
    const size_t later = stages_ - stage - 1;  // each needs a layer
    for (size_t first = stage; first < layers_; ++first) {
      if (reached[first].empty()) continue;
      for (size_t last = first + 1; last + later <= layers_; ++last) {
        if (later == 0 && last != layers_) continue;
        const auto planned = Plan(first, last, stage);
        if (!planned) break;  // more layers do not fit either
        for (const Division& division : reached[first])
          KeepBest(next[last], With(division, *planned));
      }
    }
    return next;
  }

  std::optional<PlannedStage> Plan(size_t first, size_t last, size_t stage) const {
    const int number = static_cast<int>(stage);
    const auto chosen = Recomputed(costs_, layers_, first, last, number, capacity_);
    if (!chosen) return std::nullopt;
    PlannedStage planned{.first = first, .last = last};
    for (size_t l = first; l < last; ++l)
      if ((*chosen)[l]) planned.recomputed.push_back(l);
    planned.cost = costs_.Stage(first, last, number, *chosen);
    return planned;
  }

  static Division With(const Division& division, const PlannedStage& stage) {
    Division longer = division;
    longer.slowest = std::max(longer.slowest, stage.cost.us);
    longer.sum += stage.cost.us;
    longer.exposed = std::max(longer.exposed, stage.cost.exposed_us + stage.cost.update_us);
    longer.stages.push_back(stage);
    return longer;
  }

  const CostModel& costs_;
  size_t layers_, stages_;
  double capacity_;
};

ParallelPlan PlanOf(const ParallelStrategy& strategy, const Division& division) {
  const auto rounds = static_cast<double>(strategy.microbatches);
  ParallelPlan plan{.strategy = strategy, .stages = division.stages};
  plan.step_us = (rounds - 1) * division.slowest + division.sum + division.exposed;
  plan.bubble_us = division.sum - division.slowest;
  for (const PlannedStage& stage : plan.stages) {
    plan.bytes = std::max(plan.bytes, stage.cost.bytes);
    plan.exposed_us = std::max(plan.exposed_us, stage.cost.exposed_us);
  }
  return plan;
}

std::vector<int> DivisorsOf(int64_t number, int64_t most) {
  std::vector<int> divisors;
  for (int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) divisors.push_back(static_cast<int>(d));
  return divisors;
}

bool CanSplit(const ModelProfile& model) {
  return std::ranges::any_of(model.layers, [](const auto& l) { return l.split_parameters > 0; });
}

/// Memory without any layer that keeps its values.
double LeastBytes(const ParallelRequest& request, const ParallelStrategy& strategy) {
  const CostModel costs(request.model, request.cluster, request.facts, strategy);
  const size_t layers = request.model.layers.size();
  std::vector<bool> all(layers, true);
  if (strategy.pipeline > 1) return kNever;
  return costs.Stage(0, layers, 0, all).bytes;
}

/// The plan of a strategy for the objective: the fastest one, or the smallest one by bisection of
/// the capacity.
ParallelPlan PlanFor(const ParallelRequest& request, const ParallelStrategy& strategy) {
  ParallelPlan best = PlanStrategy(request, strategy, request.facts.capacity);
  if (request.objective != PlanObjective::kMemory || best.stages.empty()) return best;
  double low = 0;
  for (int i = 0; i < 20 && best.bytes > 1.01 * low; ++i) {
    const double middle = (low + best.bytes) / 2;
    ParallelPlan plan = PlanStrategy(request, strategy, middle);
    if (plan.stages.empty())
      low = middle;
    else
      best = std::move(plan);
  }
  return best;
}

Status Check(const ParallelRequest& request) {
  if (request.model.layers.empty()) return Invalid("has no layers", "request.model");
  if (request.cluster.gpus < 1) return Invalid("must be above 0", "request.gpus");
  if (request.facts.batch < 1) return Invalid("must be above 0", "request.batch");
  if (!(request.facts.capacity > 0)) return Invalid("must be above 0", "request.capacity");
  return {};
}

}  // namespace

std::vector<ParallelStrategy> Strategies(const ParallelRequest& request) {
  std::vector<ParallelStrategy> strategies;
  const int gpus = request.cluster.gpus;
  const auto layers = static_cast<int64_t>(request.model.layers.size());
  for (const int pipeline : DivisorsOf(gpus, layers)) {
    for (const int tensor : DivisorsOf(gpus / pipeline, CanSplit(request.model) ? 8 : 1)) {
      const int data = gpus / pipeline / tensor;
      if (request.facts.batch % data != 0) continue;
      for (const int microbatches : DivisorsOf(request.facts.batch / data, 64))
        for (int zero = 0; zero <= (data > 1 ? 3 : 0); ++zero)
          for (int sequence = 0; sequence <= (tensor > 1 ? 1 : 0); ++sequence)
            strategies.push_back({pipeline, tensor, data, zero, sequence == 1, microbatches});
    }
  }
  return strategies;
}

ParallelPlan PlanStrategy(const ParallelRequest& request, const ParallelStrategy& strategy,
                          double capacity) {
  const CostModel costs(request.model, request.cluster, request.facts, strategy);
  Divider divider(costs, request.model.layers.size(), strategy.pipeline, capacity);
  ParallelPlan best{.strategy = strategy, .step_us = kNever};
  for (const Division& division : divider.Best()) {
    ParallelPlan plan = PlanOf(strategy, division);
    plan.step_us = std::max(plan.step_us, costs.HostUs());
    if (plan.step_us < best.step_us) best = std::move(plan);
  }
  return best;
}

Result<ParallelPlans> PlanParallel(const ParallelRequest& request) {
  ATUNNER_RETURN_IF_ERROR(Check(request));
  ParallelPlans plans;
  std::vector<ParallelPlan> found;
  double least = kNever;
  for (const ParallelStrategy& strategy : Strategies(request)) {
    ++plans.examined;
    ParallelPlan plan = PlanFor(request, strategy);
    if (!plan.stages.empty())
      found.push_back(std::move(plan));
    else
      ++plans.too_large;
    least = std::min(least, LeastBytes(request, strategy));
  }
  if (plans.examined == 0)
    return Invalid(fmt::format("{} samples cannot be divided among {} GPUs", request.facts.batch,
                               request.cluster.gpus),
                   "request.batch", "take a multiple of the number of GPUs");
  if (found.empty())
    return Fail(ErrorCode::kUnsupported,
                fmt::format("no plan fits into {:.1f} GB; without pipeline the least is {:.1f} GB",
                            request.facts.capacity / 1e9, least / 1e9),
                "request.capacity", "take more GPUs, or a smaller batch");
  const bool memory = request.objective == PlanObjective::kMemory;
  std::ranges::stable_sort(found, [&](const ParallelPlan& a, const ParallelPlan& b) {
    return memory ? a.bytes < b.bytes : a.step_us < b.step_us;
  });
  plans.best = std::move(found.front());
  for (size_t i = 1; i < found.size() && plans.others.size() < request.alternatives; ++i)
    plans.others.push_back(std::move(found[i]));
  return plans;
}

double BucketMegabytes(const LinkModel& link, int gpus) {
  if (gpus < 2) return 25;
  const double alpha = AllReduceUs(link, 1, gpus);
  const double bytes = 19 * alpha * link.bus_gbps * 1e3 / (2.0 * (gpus - 1) / gpus);
  return std::clamp(bytes / 1e6, 25.0, 200.0);
}

}  // namespace atunner::planning
