// How a training step is spread over GPUs, and what that costs. Times in microseconds, predicted.
//
// A step of m microbatches over p stages, one forward and one backward pass at a time (1F1B):
//
//     step = (m - 1) * slowest stage + sum of the stages + exposed communication of the gradients
//
// so that with equal stages the bubble is (p - 1) / (m + p - 1) of it.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/planning/parallel/model_profile.h"
#include "atunner/planning/parallel/topology.h"

namespace atunner::planning {

/// The same for all layers.
struct ParallelStrategy {
  int pipeline = 1;  ///< stages
  int tensor = 1;    ///< GPUs that share each matrix product
  int data = 1;      ///< replicas
  int zero = 0;  ///< 1: optimizer states are divided over replicas, 2: gradients, 3: weights too
  bool sequence = false;  ///< what tensor parallelism does not split is split by the sequence
  int64_t microbatches = 1;
  bool operator==(const ParallelStrategy&) const = default;
};

struct TrainingFacts {
  int64_t batch = 1;  ///< samples of one step, over all GPUs
  /// Adam: two float32 states
  double optimizer_bytes = 8;  ///< of one parameter, besides a float32 copy of 16-bit weights
  double capacity = 0;         ///< bytes of one GPU that the plan may fill
};

/// Consecutive layers [first, last) on the GPUs of one stage.
struct StageCost {
  double us = 0;  ///< one microbatch: forward, backward, recomputation, communication within
  double compute_us = 0;  ///< of that, kernels
  double comm_us = 0;     ///< of that, tensor parallelism and transfers between stages
  double exposed_us = 0;  ///< once a step: gradients and weights that nothing hides
  double update_us = 0;   ///< once a step: the optimizer
  double bytes = 0;       ///< most memory of one GPU
};

/// Cost of layers of one model in one strategy.
class CostModel {
 public:
  CostModel(const ModelProfile& model, const ClusterProfile& cluster, const TrainingFacts& facts,
            const ParallelStrategy& strategy);

  /// `recomputed[l]` of all layers of the model: layer l keeps only its input (checkpointing).
  StageCost Stage(size_t first, size_t last, int stage, const std::vector<bool>& recomputed) const;
  /// What recomputing a layer adds to a microbatch, and what it frees in `stage`.
  double RecomputeUs(size_t layer) const { return forward_us_[layer]; }
  double FreedBytes(size_t layer, int stage) const;
  /// Memory of a layer's values while they are computed again.
  double PeakBytes(size_t layer) const { return SavedBytes(model_.layers[layer]); }
  /// Samples that one GPU group computes at once.
  double microbatch() const { return microbatch_; }
  /// The least time of a step: what the host needs, if that was measured.
  double HostUs() const;
  /// Time of a step of these stages.
  double StepUs(const std::vector<StageCost>& stages) const;

 private:
  double ForwardUs(const LayerProfile& layer, int tensor) const;
  void UseMeasured();
  double Bandwidth() const;
  double UpdateBytes() const;
  double TensorUs(const LayerProfile& layer) const;
  double SavedBytes(const LayerProfile& layer) const;
  double InputBytes(size_t layer) const;
  double StateBytes(const LayerProfile& layer) const;
  double GradientUs(const LayerProfile& layer) const;
  double LastUs(const LayerProfile& layer) const;
  double ShardCopyUs(const LayerProfile& layer) const;
  double UpdateUs(const LayerProfile& layer) const;
  double OwnParameters(const LayerProfile& layer) const;
  double Outstanding(int stage) const;

  const ModelProfile& model_;
  const ClusterProfile& cluster_;
  const TrainingFacts& facts_;
  const ParallelStrategy strategy_;
  double microbatch_ = 1;
  std::vector<double> forward_us_;
  double backward_work_ = 2;  ///< the gradients of a product need two products of the same size
  double update_scale_ = 1;   ///< measured update of the whole model over the predicted one
};

}  // namespace atunner::planning
