// Which build of this program is running.
#pragma once

#include <string>

namespace atunner {

/// The linker's build id of the running executable in hex, equal for the stripped file; empty if
/// the linker wrote none.
std::string BuildId();

}  // namespace atunner
