// Windows of images and convolutions on values of a graph, with a geometry of its own for each
// axis.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The windows along one spatial axis.
struct WindowAxis {
  int64_t stride = 1;
  int64_t low = 0;   ///< elements added in front
  int64_t high = 0;  ///< elements added behind
  int64_t dilation = 1;
};
using WindowAxes = std::vector<WindowAxis>;

/// Pads the axes from `first` on with `value` and makes windows of them: each axis becomes two.
Value Windows(GraphBuilder& g, Value x, int64_t first, const std::vector<int64_t>& sizes,
              const WindowAxes& axes, double value);

/// y[n, k, p…] = Σ x[n, c, p·stride + r·dilation - low …] · w[k, c, r…], with channels first and
/// groups, in 1, 2 or 3 dimensions.
Value Convolve(GraphBuilder& g, Value x, Value w, int64_t groups, const WindowAxes& axes);

/// A transposed convolution of x[N, C, …] and w[C, K / groups, …], which is the gradient of a
/// convolution by its input: zeros are put between the elements of x (stride), and the filter is
/// reversed. `added` elements are added at the end of each axis.
Value ConvolveTransposed(GraphBuilder& g, Value x, Value w, int64_t groups, const WindowAxes& axes,
                         const std::vector<int64_t>& added);

}  // namespace atunner::graph
