// Names of tuning parameters that were different in earlier versions. Stores and artifacts on
// users' disks have the old ones; they are translated when they are read.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "atunner/model/space/parameter_space.h"

namespace atunner {

struct RenamedParameter {
  std::string_view before;
  std::string_view now;
};

/// Every renamed parameter of the schedule families. To rename one, add a line to the table in
/// renamed_parameters.cpp.
std::span<const RenamedParameter> RenamedParameters();

/// Today's name of a parameter.
std::string CurrentName(const std::string& name,
                        std::span<const RenamedParameter> renamed = RenamedParameters());

/// Replaces old names, also in constraints and conditions. False when there were none to replace. A
/// name is left alone where the space has another parameter of the new name.
bool UseCurrentNames(ParameterSpace& space,
                     std::span<const RenamedParameter> renamed = RenamedParameters());

}  // namespace atunner
