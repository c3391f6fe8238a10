// The table of ONNX operators: onnx.def.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/importers/onnx/onnx_call.h"

namespace atunner::importers {

/// Builds an operator's graph. `text` is the row's last column. Results that it does not make are
/// those that models in inference do not use.
using BuildOnnx = std::vector<graph::Value> (*)(OnnxCall& call, std::string_view text);

struct OnnxOperator {
  std::string_view name;  ///< "Conv"
  BuildOnnx build;
  std::string_view text;
};

/// nullptr for an unknown operator.
const OnnxOperator* FindOnnx(std::string_view name);

/// All operators, sorted.
std::vector<std::string_view> OnnxOperators();

}  // namespace atunner::importers
