// Variables of a module that has machine code only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::recorder {

/// A `__device__` or `__constant__` variable of a module.
struct ModuleSymbol {
  std::string name;
  bool constant = false;  ///< kernels do not write it
  bool operator==(const ModuleSymbol&) const = default;
};

/// By the symbol table of a cubin. kInvalidInput for anything that is not one; every offset is
/// checked.
Result<std::vector<ModuleSymbol>> SymbolsOfCubin(std::string_view cubin);

}  // namespace atunner::recorder
