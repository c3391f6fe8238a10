// Which build of this program is running.
#pragma once

#include <string>

namespace atunner {

/// The linker's identification of the running executable, in hex, the same whether or not it was
/// stripped; empty where the linker wrote none.
std::string BuildId();

}  // namespace atunner
