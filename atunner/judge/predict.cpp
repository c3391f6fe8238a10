#include "atunner/judge/predict.h"

#include <algorithm>
#include <cmath>

#include "atunner/base/random.h"
#include "atunner/verify/host_fill.h"

namespace atunner {
namespace {

// A prime number, so that the tile does not repeat in step with the rows.
constexpr size_t kTileElements = 65521;
// Memory beyond this size stays zero, in pages that cost nothing.
constexpr uint64_t kFilledBytes = uint64_t{512} << 20;

Status FillByTiles(PredictingDevice& device, const TaskBuffers::Tensor& tensor) {
  const size_t size = SizeOf(tensor.spec->dtype);
  std::vector<std::byte> tile(kTileElements * size);
  Random random(tensor.position + 1);
  const Fill& fill = tensor.spec->fill;
  for (size_t i = 0; i < kTileElements; ++i) {
    double value = 0;
    if (fill.kind == Fill::Kind::kUniform) {
      value = fill.low + (fill.high - fill.low) * random.Uniform();
      if (!IsFloat(tensor.spec->dtype)) value = std::floor(value);
    } else if (fill.kind == Fill::Kind::kConstant) {
      value = fill.low;
    } else if (fill.kind == Fill::Kind::kIota) {
      value = static_cast<double>(i);
    } else if (fill.kind == Fill::Kind::kFamilies) {
      value = IsFloat(tensor.spec->dtype) ? random.Normal() : static_cast<double>(random.Below(9));
    }
    StoreElement(tensor.spec->dtype, tile.data(), i, value);
  }
  const auto bytes = std::min(static_cast<uint64_t>(tensor.shape.bytes), kFilledBytes);
  for (uint64_t at = 0; at < bytes; at += tile.size()) {
    const uint64_t count = std::min<uint64_t>(tile.size(), bytes - at);
    ATUNNER_RETURN_IF_ERROR(device.CopyIn(tensor.address + at, std::span(tile).first(count)));
  }
  return {};
}

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

Result<TaskBuffers> MakePredictionBuffers(PredictingDevice& device, const KernelSpec& spec) {
  ATUNNER_TRY(TaskBuffers buffers, TaskBuffers::Allocate(device, spec, spec.dims, 0));
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_input()) continue;
    if (FillsFromHost(tensor.spec->fill)) {
      ATUNNER_TRY(const auto data,
                  HostFill(*tensor.spec, static_cast<uint64_t>(tensor.shape.elements)));
      ATUNNER_RETURN_IF_ERROR(device.CopyIn(tensor.address, data));
    } else {
      ATUNNER_RETURN_IF_ERROR(FillByTiles(device, tensor));
    }
  }
  return buffers;
}

Result<Estimate> PredictPlan(PredictingDevice& device, const KernelSpec& spec,
                             const CandidateKernel& candidate, LoadedModule& module,
                             const TaskBuffers& buffers) {
  ATUNNER_TRY(const BoundPlan plan,
              BindPlan(device, candidate.plan, spec, buffers, Workspaces::kFresh));
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
