#include "atunner/planning/parallel/strategy.h"

#include <algorithm>

#include "atunner/model/value/dtype.h"

namespace atunner::planning {
CostModel::CostModel(const ModelProfile& model, const ClusterProfile& cluster,
                     const TrainingFacts& facts, const ParallelStrategy& strategy)
    : model_(model), cluster_(cluster), facts_(facts), strategy_(strategy) {
  microbatch_ = static_cast<double>(facts.batch) / strategy.data /
                static_cast<double>(strategy.microbatches);
  for (const LayerProfile& layer : model.layers)
    forward_us_.push_back(ForwardUs(layer, strategy.tensor));
  if (!model.measured.passes.empty()) UseMeasured();
}

/// Measured times replace those of one GPU; what tensor parallelism saves is predicted. Layers that
/// were not measured by themselves share the rest of the forward pass as predicted.
void CostModel::UseMeasured() {
  const MeasuredPass pass = PassAt(model_.measured.passes, microbatch_);
  double rest = pass.forward_us, predicted_rest = 0, predicted_update = 0;
  for (const LayerProfile& layer : model_.layers) {
    const auto found = pass.layers_us.find(layer.name);
    if (found != pass.layers_us.end())
      rest -= found->second;
    else
      predicted_rest += ForwardUs(layer, 1);
    predicted_update += layer.parameters;
  }
  for (size_t l = 0; l < forward_us_.size(); ++l) {
    const LayerProfile& layer = model_.layers[l];
    const auto found = pass.layers_us.find(layer.name);
    const double scale = found != pass.layers_us.end() ? found->second / ForwardUs(layer, 1)
                         : predicted_rest > 0          ? std::max(0.0, rest) / predicted_rest
                                                       : 0;
    forward_us_[l] *= scale;
  }
  backward_work_ = pass.backward_us / pass.forward_us;
  predicted_update *= UpdateBytes() / Bandwidth() * 1e6;
  if (predicted_update > 0) update_scale_ = pass.update_us / predicted_update;
}

double CostModel::Bandwidth() const {
  return cluster_.device.dram_gbps * 1e9 * cluster_.memory_share;
}

/// The update reads weight, gradient and states of a parameter, and writes weight and states.
double CostModel::UpdateBytes() const {
  const double master = model_.parameter_bytes == 2 ? 4 : 0;
  return 3 * model_.parameter_bytes + 2 * (facts_.optimizer_bytes + master);
}

/// The roofline of each kernel.
double CostModel::ForwardUs(const LayerProfile& layer, int tensor) const {
  const bool half = model_.parameter_bytes == 2;
  const DType type = half ? DType::kBFloat16 : DType::kFloat32;
  const double rate = cluster_.device.PeakFlops(type, half) * cluster_.product_share;
  const double plain = cluster_.device.PeakFlops(DType::kFloat32, false) * cluster_.product_share;
  const double bandwidth = Bandwidth();
  double us = 0;
  for (const KernelWork& kernel : layer.kernels) {
    const bool divided = kernel.split || strategy_.sequence;
    const double share = microbatch_ / (divided ? tensor : 1);
    const double weights = kernel.weight_bytes / (kernel.split ? tensor : 1);
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

/// Communication of data parallelism in one step that other work may hide. PyTorch's sharded
/// modules gather the weights for each forward pass, with ZeRO 3 for each backward pass, too, and
/// reduce the gradients of every microbatch.
double CostModel::GradientUs(const LayerProfile& layer) const {
  const double bytes = OwnParameters(layer) * model_.parameter_bytes;
  const auto passes = static_cast<double>(strategy_.microbatches);
  if (strategy_.zero <= 1) return AllReduceUs(cluster_.link, bytes, strategy_.data);
  return strategy_.zero * passes * GatherUs(cluster_.link, bytes, strategy_.data);
}

/// With ZeRO 1 every GPU sends the weights that it updated: nothing is left to hide that.
double CostModel::LastUs(const LayerProfile& layer) const {
  const double bytes = OwnParameters(layer) * model_.parameter_bytes;
  return strategy_.zero == 1 ? GatherUs(cluster_.link, bytes, strategy_.data) : 0;
}

/// Sharded weights and gradients are copied to and from the buffers of the collectives.
double CostModel::ShardCopyUs(const LayerProfile& layer) const {
  if (strategy_.zero < 2 || strategy_.data < 2) return 0;
  const auto passes = static_cast<double>(strategy_.microbatches);
  return 1e6 * strategy_.zero * passes * 2 * OwnParameters(layer) * model_.parameter_bytes /
         Bandwidth();
}

double CostModel::UpdateUs(const LayerProfile& layer) const {
  const double owned = OwnParameters(layer) / (strategy_.zero >= 1 ? strategy_.data : 1);
  return update_scale_ * 1e6 * owned * UpdateBytes() / Bandwidth();
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
  double gradients = 0, hiding = 0, largest = 0, gathered = 0, last_us = 0;
  for (size_t l = first; l < last; ++l) {
    const LayerProfile& layer = model_.layers[l];
    cost.compute_us += (1 + backward_work_ + (recomputed[l] ? 1 : 0)) * forward_us_[l];
    cost.comm_us += TensorUs(layer);
    cost.bytes += StateBytes(layer) + Outstanding(stage) * SavedBytes(layer);
    if (recomputed[l]) {
      cost.bytes -= FreedBytes(l, stage);
      largest = std::max(largest, SavedBytes(layer));  // while it is computed again
    }
    gradients += GradientUs(layer);
    hiding += backward_work_ * forward_us_[l];
    last_us += LastUs(layer) + ShardCopyUs(layer);
    cost.update_us += UpdateUs(layer);
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
  cost.exposed_us = std::max(least, gradients - hiding) + last_us;
  return cost;
}

double CostModel::HostUs() const {
  const MeasuredHost& host = model_.measured.host;
  if (strategy_.pipeline > 1) return 0;
  const double pass = strategy_.zero == 3   ? host.zero3_us
                      : strategy_.zero == 2 ? host.zero2_us
                                            : host.pass_us;
  return static_cast<double>(strategy_.microbatches) * pass;
}

double CostModel::StepUs(const std::vector<StageCost>& stages) const {
  double slowest = 0, sum = 0, exposed = 0;
  for (const StageCost& stage : stages) {
    slowest = std::max(slowest, stage.us);
    sum += stage.us;
    exposed = std::max(exposed, stage.exposed_us + stage.update_us);
  }
  const auto rounds = static_cast<double>(strategy_.microbatches);
  return std::max(HostUs(), (rounds - 1) * slowest + sum + exposed);
}

}  // namespace atunner::planning
