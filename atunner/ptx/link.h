// Links several modules into one, as the device linker does with relocatable code.
#pragma once

#include <span>
#include <string>

#include "atunner/base/result.h"

namespace atunner::ptx {

/// One PTX text with the definitions of all texts. A declaration and a definition of one name mean
/// the same thing. kInvalidInput when two texts define the same name (unless it is weak), or a text
/// is not PTX.
Result<std::string> Link(std::span<const std::string> texts);

}  // namespace atunner::ptx
