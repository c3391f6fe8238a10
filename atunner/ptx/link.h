// Several modules made one, as the device linker does with relocatable code.
#pragma once

#include <span>
#include <string>

#include "atunner/base/result.h"

namespace atunner::ptx {

/// PTX that holds what all of them define; what one declares and another defines is the same thing.
/// kInvalidInput when two define the same name (unless it is weak), or a text is none of PTX.
Result<std::string> Link(std::span<const std::string> texts);

}  // namespace atunner::ptx
