// The kinds of operators that are recognised: a file each. All ask for one written buffer.
#pragma once

#include <vector>

#include "atunner/recognition/hypothesis.h"

namespace atunner::recognition {

/// The hypotheses of a kind, the likelier ones first.
std::vector<Hypothesis> ProductHypotheses(const Facts& facts);
std::vector<Hypothesis> RowHypotheses(const Facts& facts);
std::vector<Hypothesis> LayoutHypotheses(const Facts& facts);
std::vector<Hypothesis> ConvolutionHypotheses(const Facts& facts);
std::vector<Hypothesis> PoolingHypotheses(const Facts& facts);
std::vector<Hypothesis> AttentionHypotheses(const Facts& facts);

}  // namespace atunner::recognition
