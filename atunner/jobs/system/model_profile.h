// From an imported model to what the planner of parallelism needs: layers, work, memory, traffic.
#pragma once

#include <cstdint>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/importers/import_model.h"
#include "atunner/planning/parallel/model_profile.h"

namespace atunner::jobs {

/// How nodes become kernels.
enum class Kernels : uint8_t {
  kFused,     ///< a map that only one other map or reduction reads is computed inside of it
  kEachNode,  ///< as PyTorch's eager mode does it
};

/// Layers are named by the weights that they read: "h.0.attn.weight" belongs to "h.0", "head.bias"
/// to "head". A node belongs to the last layer of those that it depends on. Of a training step only
/// the forward pass counts as work, and what its backward pass reads is what is saved. Without a
/// backward pass everything that is stored counts as saved.
///
/// A product of a weight with a value that is not divided is divided by its columns under tensor
/// parallelism; one with a divided value is divided by its rows, and its result is all-reduced
/// (Megatron's scheme).
///
/// kInvalidInput if the model has no weights, or open sizes.
Result<planning::ModelProfile> ProfileOfModel(const importers::ImportedModel& model,
                                              Kernels kernels = Kernels::kFused);

}  // namespace atunner::jobs
