// The table of ATen operators: aten.def.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/importers/aten/aten_call.h"

namespace atunner::importers {

/// Builds an operator's graph. Results that it does not make are those that models do not use, such
/// as the statistics of a norm in inference.
using BuildAten = std::vector<graph::Value> (*)(AtenCall& call, std::string_view text);

struct AtenOperator {
  std::string_view target;
  std::vector<Parameter> parameters;
  BuildAten build;
  std::string_view text;  ///< what `build` needs to know of the row
};

/// nullptr for an unknown operator. Targets are as programs have them: "aten.add.Tensor".
const AtenOperator* FindAten(std::string_view target);

/// All targets, sorted.
std::vector<std::string_view> AtenTargets();

}  // namespace atunner::importers
