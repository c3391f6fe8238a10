// A fusion plan as text, as JSON and in Graphviz's language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "atunner/fusion/fusion_plan.h"
#include "atunner/model/json/json.h"

namespace atunner::fusion {

/// A line for the whole and one for each group; with `explain` also the nodes of each group, and
/// each boundary with its reason.
std::string TextOf(const FusionPlan& plan, bool explain);

/// {"name", "nodes", "groups": [...], "boundaries": [...], "roundings": [...], "before", "after",
/// "flops"}. Groups are counted from 1, as in the text.
Json JsonOf(const FusionPlan& plan);

/// A cluster for each group, an edge for each operand; values between groups have their bytes.
std::string DotOf(const FusionPlan& plan);

/// "contract", "reduce_sum", "map", "constant", or an input's name.
std::string LabelOf(const graph::Node& node);

/// `text` between quotation marks, for Graphviz.
std::string Quoted(std::string_view text);

/// A count with its noun: "1 kernel", "3 kernels".
std::string Counted(size_t count, std::string_view noun);

}  // namespace atunner::fusion
