#include "atunner/planning/parallel/strategy.h"

#include <algorithm>

#include "atunner/model/value/dtype.h"

namespace atunner::planning {
namespace {

/// The gradients of a product need two products of the same size.
constexpr double kBackwardWork = 2;

}  // namespace

CostModel::CostModel(const ModelProfile& model, const ClusterProfile& cluster,
                     const TrainingFacts& facts, const ParallelStrategy& strategy)
    : model_(model), cluster_(cluster), facts_(facts), strategy_(strategy) {
  microbatch_ = static_cast<double>(facts.batch) / strategy.data /
                static_cast<double>(strategy.microbatches);
  for (const LayerProfile& layer : model.layers) forward_us_.push_back(ForwardUs(layer));
}

/// The roofline of each kernel.
double CostModel::ForwardUs(const LayerProfile& layer) const {
  const bool half = model_.parameter_bytes == 2;
  const DType type = half ? DType::kBFloat16 : DType::kFloat32;
  const double rate = cluster_.device.PeakFlops(type, half) * cluster_.product_share;
  const double plain = cluster_.device.PeakFlops(DType::kFloat32, false) * cluster_.product_share;
  const double bandwidth = cluster_.device.dram_gbps * 1e9 * cluster_.memory_share;
  double us = 0;
  for (const KernelWork& kernel : layer.kernels) {
    const bool divided = kernel.split || strategy_.sequence;
    const double share = microbatch_ / (divided ? strategy_.tensor : 1);
    const double weights = kernel.weight_bytes / (kernel.split ? strategy_.tensor : 1);
    us += 1e6 * std::max(kernel.flops * share / (kernel.product ? rate : plain),
                         (kernel.bytes * share + weights) / bandwidth);
    us += cluster_.device.launch_overhead_us;
  }
  return us;
}

/// All-reduces of the forward pass; the backward pass has as many.
double CostModel::TensorUs(const LayerProfile& layer) const {
  return 2 * AllReduceUs(cluster_.link, layer.reduced_bytes * microbatch_, strategy_.tensor);
}

double CostModel::SavedBytes(const LayerProfile& layer) const {
  const double whole = layer.saved_bytes - layer.split_saved_bytes;
  return microbatch_ * (layer.split_saved_bytes / strategy_.tensor +
                        whole / (strategy_.sequence ? strategy_.tensor : 1));
}

double CostModel::InputBytes(size_t layer) const {
  const double bytes = layer > 0 ? model_.layers[layer - 1].output_bytes : 0;
  return microbatch_ * bytes / (strategy_.sequence ? strategy_.tensor : 1);
}

double CostModel::OwnParameters(const LayerProfile& layer) const {
  return layer.parameters - layer.split_parameters + layer.split_parameters / strategy_.tensor;
}

double CostModel::StateBytes(const LayerProfile& layer) const {
  const double parameters = OwnParameters(layer), each = model_.parameter_bytes;
  const double replicas = strategy_.data;
  const double master = model_.parameter_bytes == 2 ? 4 : 0;
  return parameters * (each / (strategy_.zero >= 3 ? replicas : 1) +
                       each / (strategy_.zero >= 2 ? replicas : 1) +
                       (facts_.optimizer_bytes + master) / (strategy_.zero >= 1 ? replicas : 1));
}

/// Communication of data parallelism in one step. ZeRO 2 divides the gradients of every
/// microbatch; ZeRO 3 also gathers the weights for each forward and each backward pass.
double CostModel::GradientUs(const LayerProfile& layer) const {
  const double bytes = OwnParameters(layer) * model_.parameter_bytes;
  const double gather = GatherUs(cluster_.link, bytes, strategy_.data);
  const auto passes = static_cast<double>(strategy_.microbatches);
  switch (strategy_.zero) {
    case 0:
      return AllReduceUs(cluster_.link, bytes, strategy_.data);
    case 1:
      return 2 * gather;
    case 2:
      return (passes + 1) * gather;
    default:
      return 3 * passes * gather;
  }
}

double CostModel::Outstanding(int stage) const {
  return static_cast<double>(std::min<int64_t>(strategy_.microbatches, strategy_.pipeline - stage));
}

double CostModel::FreedBytes(size_t layer, int stage) const {
  return Outstanding(stage) * (SavedBytes(model_.layers[layer]) - InputBytes(layer));
}

StageCost CostModel::Stage(size_t first, size_t last, int stage,
                           const std::vector<bool>& recomputed) const {
  StageCost cost;
  double gradients = 0, hiding = 0, largest = 0, gathered = 0;
  for (size_t l = first; l < last; ++l) {
    const LayerProfile& layer = model_.layers[l];
    cost.compute_us += (1 + kBackwardWork + (recomputed[l] ? 1 : 0)) * forward_us_[l];
    cost.comm_us += TensorUs(layer);
    cost.bytes += StateBytes(layer) + Outstanding(stage) * SavedBytes(layer);
    if (recomputed[l]) {
      cost.bytes -= FreedBytes(l, stage);
      largest = std::max(largest, SavedBytes(layer));  // while it is computed again
    }
    gradients += GradientUs(layer);
    hiding += kBackwardWork * forward_us_[l];
    gathered = std::max(gathered, OwnParameters(layer) * model_.parameter_bytes);
  }
  if (strategy_.zero >= 3) cost.bytes += 2 * gathered;  // the layer in use, and the next one
  cost.bytes += largest;
  if (first > 0) cost.comm_us += 2 * SendUs(cluster_.link, InputBytes(first));
  cost.us = cost.compute_us + cost.comm_us;
  if (strategy_.zero >= 2) hiding *= static_cast<double>(strategy_.microbatches);
  // The first layer's gradients come last: nothing is left to hide them.
  const double least = std::max((1 - cluster_.overlap_share) * gradients,
                                strategy_.data > 1 ? GradientUs(model_.layers[first]) : 0.0);
  cost.exposed_us = std::max(least, gradients - hiding);
  return cost;
}

double CostModel::StepUs(const std::vector<StageCost>& stages) const {
  double slowest = 0, sum = 0, exposed = 0;
  for (const StageCost& stage : stages) {
    slowest = std::max(slowest, stage.us);
    sum += stage.us;
    exposed = std::max(exposed, stage.exposed_us);
  }
  return static_cast<double>(strategy_.microbatches - 1) * slowest + sum + exposed;
}

}  // namespace atunner::planning
