// The operators that are classes.
#pragma once

#include <vector>

#include "atunner/operators/operator.h"

namespace atunner {

const Operator& SoftmaxOperator();
const Operator& SoftmaxBackwardOperator();
const Operator& LayerNormOperator();
const Operator& LayerNormBackwardOperator();
const Operator& MatmulOperator();
const Operator& Conv2dOperator();
const Operator& AttentionOperator();

std::vector<const Operator*> OperatorList();

/// A baseline kernel: `source` of kernels/operators behind definitions of its types. `wide`:
/// arithmetic and outputs in float64.
RenderedKernel BaselineKernel(std::string_view source, LaunchPlan plan, DType dtype, bool wide);

}  // namespace atunner
