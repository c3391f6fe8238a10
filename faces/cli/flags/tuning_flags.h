// The flags of every verb that tunes, and the options that they make.
#pragma once

#include <string>
#include <vector>

#include "atunner/jobs/requests/requests.h"

namespace CLI {
class App;
}

namespace atunner::cli {

struct TuningFlags {
  std::string target = "auto";
  std::string strategy = "auto";
  std::vector<std::string> where;
  std::string budget = "60 trials";
  std::string objective = "time";
  std::string devices;  ///< "", "all" or "0,1"
  uint64_t seed = 1;
  std::string out;
  bool force_virtual = false;
  bool fresh = false;
  bool no_transfer = false;
  bool no_baselines = false;
  int compile_threads = 0;
  double compile_timeout = jobs::kCompileTimeoutSeconds;
  std::vector<std::string> dump;
  std::string stop_after;

  /// `command`: the command line, kept in the run's record.
  Result<jobs::TuningOptions> Options(const std::string& command) const;
};

void AddTuning(CLI::App* verb, TuningFlags& flags);
void AddCompileTimeout(CLI::App* verb, double& seconds);

}  // namespace atunner::cli
