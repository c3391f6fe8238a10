// A model as the planner sees it: layers in order, with the work, memory and traffic of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/planning/parallel/measured_pass.h"

namespace atunner::planning {

/// One kernel of the forward pass. Per sample, except `weight_bytes`.
struct KernelWork {
  double flops = 0;
  double bytes = 0;         ///< read and written, without weights
  double weight_bytes = 0;  ///< read once for all samples of a batch
  bool product = false;     ///< a matrix product: on tensor cores
  bool split = false;       ///< tensor parallelism divides it among GPUs
};

struct LayerProfile {
  std::string name;  ///< "transformer.h.0"
  std::vector<KernelWork> kernels;
  double parameters = 0;         ///< numbers
  double split_parameters = 0;   ///< of them, divided by tensor parallelism
  double saved_bytes = 0;        ///< a sample: kept for the backward pass
  double split_saved_bytes = 0;  ///< of them, divided by tensor parallelism
  double output_bytes = 0;       ///< a sample: what the next layer reads of this and earlier ones
  double reduced_bytes = 0;      ///< a sample: all-reduced in the forward pass if split
};

struct ModelProfile {
  std::string name;
  std::vector<LayerProfile> layers;
  int parameter_bytes = 4;         ///< of one weight and one gradient: 4, or 2 for 16-bit types
  int64_t batch = 1;               ///< samples of the program that was read
  bool training_step = false;      ///< saved bytes are what its backward pass reads; else estimated
  MeasuredPasses measured;         ///< of one GPU; empty: passes are predicted, too
  std::vector<std::string> notes;  ///< what was assumed
};

}  // namespace atunner::planning
