// Extremely randomised regression trees with oblique splits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atunner/base/random.h"

namespace atunner {

/// Geurts et al., Machine Learning 63 (2006), with splits on one coordinate or on the sum or
/// difference of two: the times of kernels depend on products and ratios of parameters, which are
/// sums and differences on a logarithmic scale.
class RegressionForest {
 public:
  struct Prediction {
    double mean = 0;
    double deviation = 0;  ///< between the trees
  };
  /// `x`: rows of `width` coordinates; one value per row.
  void Fit(std::span<const float> x, size_t width, std::span<const double> y, size_t trees,
           Random& random);
  Prediction Predict(std::span<const float> point) const;
  bool empty() const { return roots_.empty(); }

 private:
  struct Split {
    uint16_t a = 0;
    uint16_t b = 0;
    float weight = 0;  ///< of b: 0, 1 or -1
    float threshold = 0;
    float Of(const float* point) const { return point[a] + weight * point[b]; }
  };
  struct Node {
    Split split;
    uint32_t left = 0;  ///< 0: a leaf; the right one follows the left
    double value = 0;
  };
  void Grow(uint32_t node, std::span<uint32_t> rows, Random& random);
  /// A random split with a random threshold; false when all rows have the same value of it.
  bool DrawSplit(std::span<const uint32_t> rows, Random& random, Split& split) const;
  /// Squared error after the split, up to a constant; infinity when one side is empty.
  double ErrorOf(const Split& split, std::span<const uint32_t> rows) const;
  bool BestSplit(std::span<const uint32_t> rows, Random& random, Split& best) const;

  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_;
  std::span<const float> x_;  ///< while fitting
  std::span<const double> y_;
  size_t width_ = 0;
};

}  // namespace atunner
