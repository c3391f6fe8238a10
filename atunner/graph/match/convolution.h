// Recognises convolutions: a product of two tensors that is summed over channels and filter taps,
// or that is scattered to the elements which the taps reach (transposed convolutions and
// gradients). The axes may have any order in memory.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// One spatial axis. Element `out` of the result sums over all pairs of an element `in` and a tap
/// with inner · in = stride · out + dilation · tap + shift. `inner` or `stride` is 1. A padding of
/// p is a shift of -p.
struct ConvAxis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, shift = 0, inner = 1;
  int64_t x = 0, y = 0, w = 0;  ///< strides of the three tensors along this axis, in elements
};

/// The strides of one tensor along its other axes, in elements.
struct ConvTensor {
  std::string name;
  int64_t image = 0, group = 0, channel = 0, filter = 0;
  int64_t base = 0;  ///< offset of the first element: strides of filters may be negative
};

/// y[image, group, filter, out…] = Σ x[image, group, channel, in…] · w[group, filter, channel,
/// tap…]
struct ConvForm {
  Extent images;
  int64_t groups = 1, channels = 1, filters = 1;  ///< channels and filters of one group
  /// Depth, height, width; a convolution of fewer axes uses the last ones
  std::array<ConvAxis, 3> axes;
  ConvTensor x, y, w;
  /// The contraction, and the map behind it (bias, activation), or -1
  NodeId product = -1, epilogue = -1;

  int64_t Inputs() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t Outputs() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t Taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  /// The number of residue classes of outputs: outputs of one class are reached by the same taps.
  /// More than 1 for transposed convolutions with a stride.
  int64_t Phases() const { return axes[0].inner * axes[1].inner * axes[2].inner; }
};

/// Convolutions, transposed convolutions, and the gradients of both by the image and, if the number
/// of images is constant, by the filter. The result may be cast to another type, or go through one
/// map if its layout is the contraction's. nullopt for all other graphs.
std::optional<ConvForm> ConvFormOf(const ValidGraph& graph);

/// True for a gradient by the filter (wgrad), which sums over images and pixels. Its `images` are
/// the channels of the forward convolution, and its `channels` are the images.
bool IsFilterGradient(const ConvForm& form);
/// True if the spatial axes of x (else of y) are contiguous: `step` elements from one pixel to the
/// next.
bool Dense(const ConvForm& form, bool of_x, int64_t step);

}  // namespace atunner::graph
