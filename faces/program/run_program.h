// Runs a program with the virtual GPU in the place of CUDA's driver and runtime.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "faces/program/findings.h"

namespace atunner::program {

/// How a program ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;  ///< 0: by itself
  bool well() const { return exit_code == 0 && signal == 0; }
  std::string ToString() const;
};

/// Runs `command` to its end; the library in front of it carries out the order. `apart`: what the
/// program prints goes to standard error. kInvalidInput if it cannot be started, kUnavailable
/// without the library.
Result<Ending> RunUnder(const Order& order, const std::vector<std::string>& command, bool apart);

/// The same with another library in front, `library` by its file's name, and further variables in
/// the environment.
Result<Ending> RunBehind(const std::string& library,
                         std::vector<std::pair<std::string, std::string>> variables,
                         const std::vector<std::string>& command, bool apart);

/// The GPU to simulate for a program where the user names none and there is none: an A100 or, where
/// the program was built for later GPUs only, the first of those.
std::string GpuForProgram(const std::string& command);

}  // namespace atunner::program
