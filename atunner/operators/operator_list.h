// The table of operators.
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

/// `source` of kernels/operators with the types of the task in front, and its launch.
RenderedKernel BaselineKernel(std::string_view source, LaunchPlan plan, DType dtype, bool wide);

}  // namespace atunner
