// Runs another program to its end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner {

/// The file of a program: `name` itself if it has a folder, else the first of PATH; nullopt if
/// there is none that may be run.
std::optional<Path> FindProgram(const std::string& name);

/// Runs command[0], a file, with the rest as arguments and this process's environment. What it
/// writes goes to `log`. The exit code, or 128 and the signal that ended it.
Result<int> RunCommand(std::vector<std::string> command, const Path& log);

}  // namespace atunner
