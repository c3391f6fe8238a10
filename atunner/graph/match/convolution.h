// What makes a graph a convolution: two tensors whose product is summed over channels and taps, or
// spread out over what the taps reach, whatever order their axes have in memory.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// One spatial axis. Result `out` is made from those elements `in` and taps for which
/// inner · in = stride · out + dilation · tap + shift; of `inner` and `stride` one is 1.
struct ConvAxis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, shift = 0, inner = 1;
  int64_t x = 0, y = 0, w = 0;  ///< elements of the tensors between neighbours
};

/// Elements between neighbours of a tensor.
struct ConvTensor {
  std::string name;
  int64_t image = 0, group = 0, channel = 0, filter = 0;
  int64_t base = 0;  ///< where the first element lies: filters may run backwards
};

/// y[image, group, filter, out…] = Σ x[image, group, channel, in…] · w[group, filter, channel,
/// tap…]
struct ConvForm {
  Extent images;
  int64_t groups = 1, channels = 1, filters = 1;  ///< channels and filters of one group
  /// Depth, height, width; those that there are come last
  std::array<ConvAxis, 3> axes;
  ConvTensor x, y, w;
  /// The contraction; a map that takes it and what few elements make, or -1
  NodeId product = -1, epilogue = -1;

  int64_t Inputs() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t Outputs() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t Taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  /// Outputs that differ in the taps that reach them.
  int64_t Phases() const { return axes[0].inner * axes[1].inner * axes[2].inner; }
};

/// nullopt for graphs that are something else: convolutions, transposed ones, and gradients of both
/// by the image and, where the number of images is known, by the filter. Their results may be
/// converted; or one map makes the output of a contraction that nothing moves.
std::optional<ConvForm> ConvFormOf(const ValidGraph& graph);

/// Is that summed which images and pixels are elsewhere? Then channels count as images.
bool IsFilterGradient(const ConvForm& form);
/// Are spatial axes of x or of y side by side in memory, `step` elements from one place to the
/// next?
bool Dense(const ConvForm& form, bool of_x, int64_t step);

}  // namespace atunner::graph
