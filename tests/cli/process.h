// Runs the command line as a user does.
#pragma once

#include <string>
#include <vector>

namespace atunner {

struct Outcome {
  int exit_code = 0;
  int signal = 0;
  std::string out;
  std::string err;
};

/// `shell` is one line for bash; $A is the executable. Data and cache live in `home`.
Outcome RunShell(const std::string& home, const std::string& shell);

}  // namespace atunner
