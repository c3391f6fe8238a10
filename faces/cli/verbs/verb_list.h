// The verbs of the command line. Each file of this folder adds its verbs: their flags, the request
// that they make, and how the result is printed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/jobs/config/settings.h"

namespace atunner::cli {

/// The flags that every verb has.
struct Common {
  bool json = false;
  bool quiet = false;
  bool explain = false;
  std::string store;
};

/// The parts of the command line that a verb gets besides its own flags.
struct Context {
  Common common;
  std::string command;               ///< the whole command line
  std::vector<std::string> program;  ///< what stands behind `--`
};

class VerbList {
 public:
  /// Returns the exit code; errors are rendered once, by the caller.
  using Run = std::function<Result<int>(const Context&)>;

  VerbList();
  /// A verb with the flags that every verb has.
  CLI::App* Add(const char* name, const char* meaning, Run run);
  /// Parses the command line and runs its verb. Returns the exit code.
  int Execute(int argc, char** argv);

 private:
  /// Makes options that a setting gives a value to no longer required.
  void Relax();
  /// Gives options of the verb that are not on the command line the values of settings.
  Status ApplySettings(CLI::App& verb) const;
  Result<int> RunVerb(CLI::App& verb, const Run& run);
  int Refuse(const CLI::ParseError& error, int argc, char** argv);
  int Unknown(const std::string& verb) const;
  int Finish(const Result<int>& result) const;

  CLI::App app_;
  std::vector<std::pair<CLI::App*, Run>> verbs_;
  Context context_;
  Result<std::vector<jobs::Setting>> settings_;
};

// In the order of the help text.
void AddOptimize(VerbList& verbs);
void AddGraph(VerbList& verbs);
void AddFusion(VerbList& verbs);
void AddTune(VerbList& verbs);
void AddPredict(VerbList& verbs);
void AddHardwareOptimize(VerbList& verbs);
void AddCapture(VerbList& verbs);
void AddApply(VerbList& verbs);
void AddBenchmark(VerbList& verbs);
void AddSearchBench(VerbList& verbs);
void AddSanitize(VerbList& verbs);
void AddCounts(VerbList& verbs);
void AddEvidence(VerbList& verbs);
void AddRunKernel(VerbList& verbs);
void AddArtifacts(VerbList& verbs);
void AddDevices(VerbList& verbs);
void AddDoctor(VerbList& verbs);
void AddOperators(VerbList& verbs);
void AddTest(VerbList& verbs);
void AddRuns(VerbList& verbs);
void AddConfig(VerbList& verbs);
void AddMcp(VerbList& verbs);

}  // namespace atunner::cli
