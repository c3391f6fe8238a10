#include "atunner/judge/predict.h"

#include <algorithm>

namespace atunner {
namespace {

void Merge(Estimate& total, const Estimate& step) {
  total.time_ns += step.time_ns;
  total.low_ns += step.low_ns;
  total.high_ns += step.high_ns;
  total.dram_bytes += step.dram_bytes;
  total.flops += step.flops;
  total.blocks_executed += step.blocks_executed;
  total.blocks_total += step.blocks_total;
  for (const Estimate::Part& part : step.parts) {
    const auto same = std::ranges::find_if(total.parts, [&](const Estimate::Part& have) {
      return have.name == part.name && have.overlapped == part.overlapped;
    });
    if (same == total.parts.end()) {
      total.parts.push_back(part);
    } else {
      same->ns += part.ns;
    }
  }
}

/// Shares of the board's maximum power: idle at full clocks, and the additions for fully used
/// execution units and DRAM. They are close to published measurements of data-centre GPUs and not
/// calibrated; they serve to order candidates by time, traffic and utilisation.
constexpr double kIdlePower = 0.3;
constexpr double kExecutionPower = 0.4;
constexpr double kDramPower = 0.3;

double PredictEnergy(const Estimate& estimate, const DeviceProfile& profile) {
  const auto share_of = [&](std::string_view name) {
    double ns = 0;
    for (const Estimate::Part& part : estimate.parts) ns += part.name == name ? part.ns : 0;
    return estimate.time_ns > 0 ? std::min(1.0, ns / estimate.time_ns) : 0.0;
  };
  const double power = kIdlePower + kExecutionPower * share_of("SMs") +
                       kDramPower * share_of("DRAM");
  return profile.tdp_watts * power * estimate.time_ns * 1e-9;
}

/// Runs the step on all blocks where that is cheap, because a later step may branch on its results.
/// After an expensive step only the sampled blocks have results; the rest of its output is zero.
Status Prepare(PredictingDevice& device, LoadedModule& module, const BoundStep& step,
               const Prediction& prediction) {
  constexpr uint64_t kMostThreads = uint64_t{1} << 20;
  constexpr double kMostFlops = 1e9;
  const Estimate& estimate = prediction.estimate;
  const bool sampled = estimate.blocks_executed < estimate.blocks_total;
  if (!sampled || estimate.flops > kMostFlops ||
      step.shape.grid.Count() * step.shape.block.Count() > kMostThreads)
    return {};
  ATUNNER_TRY(const LaunchOutcome outcome,
              device.Complete(module, step.entry, step.shape, step.args, prediction.blocks));
  return outcome.completed() ? Status{}
                             : Invalid("the launch does not complete: " + outcome.message);
}

}  // namespace

Result<Estimate> PredictPlan(PredictingDevice& device, const KernelSpec& spec,
                             const CandidateKernel& candidate, LoadedModule& module,
                             PredictionBuffers& buffers) {
  ATUNNER_TRY(const BoundPlan plan,
              BindPlan(device, candidate.plan, spec, buffers.tensors(), Workspaces::kFresh));
  ATUNNER_RETURN_IF_ERROR(buffers.Poison(plan));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, module, plan));
  Estimate total;
  double longest = -1;
  Predecessors earlier;
  for (const BoundStep& step : plan.steps) {
    const KernelResources* resources = candidate.module.Find(step.entry);
    if (resources == nullptr) return Invalid("the module has no kernel '" + step.entry + "'");
    ATUNNER_TRY(const Prediction prediction,
                device.Predict(module, *resources, step.shape, step.args, earlier));
    const Estimate& estimate = prediction.estimate;
    earlier.args.insert(earlier.args.end(), step.args.begin(), step.args.end());
    earlier.bytes += estimate.dram_bytes;
    if (&step != &plan.steps.back())
      ATUNNER_RETURN_IF_ERROR(Prepare(device, module, step, prediction));
    Merge(total, estimate);
    total.device = estimate.device;
    // limiter and occupancy are those of the longest step
    if (estimate.time_ns > longest) {
      longest = estimate.time_ns;
      total.limiter = estimate.limiter;
      total.occupancy = estimate.occupancy;
    }
  }
  total.energy_joules = PredictEnergy(total, device.profile());
  return total;
}

}  // namespace atunner
