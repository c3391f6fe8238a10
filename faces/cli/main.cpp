// The command line: `atunner VERB …`, and the two worker processes that it starts of itself.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "atunner/base/result.h"
#include "faces/cli/flows/flow_verbs.h"
#include "faces/cli/planning/planning_verbs.h"
#include "faces/cli/server/server_verbs.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

int Main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error with a message, not a death
  if (argc == 4 && std::string_view(argv[1]) == "__runner")
    return RunnerMain(argv[2], std::atoi(argv[3]));
  if (argc == 2 && std::string_view(argv[1]) == "__compiler") return CompilerMain();
  VerbList verbs;
  for (const auto add :
       {AddOptimize,  AddGraph,     AddFusion,    AddTune,        AddPredict,   AddHardwareOptimize,
        AddCapture,   AddApply,     AddEvidence,  AddTimeline,    AddMemory,    AddComm,
        AddParallel,  AddSystem,    AddBenchmark, AddSearchBench, AddSanitize,  AddCounts,
        AddRunKernel, AddArtifacts, AddDevices,   AddDoctor,      AddOperators, AddTest,
        AddRuns,      AddWorkflow,  AddKnowledge, AddServe,       AddToken,     AddWorker,
        AddSubmit,    AddMcp,       AddConfig})
    add(verbs);
  return verbs.Execute(argc, argv);
}

}  // namespace
}  // namespace atunner::cli

int main(int argc, char** argv) {
  int code = 0;
  bool written = true;
  try {
    code = atunner::cli::Main(argc, argv);
  } catch (const std::filesystem::filesystem_error& error) {  // for example a lost working folder
    std::fprintf(stderr, "atunner: %s\n", error.what());
    return atunner::ExitCode(atunner::ErrorCode::kInvalidInput);
  } catch (const std::system_error&) {  // fmt could not write to standard output
    written = false;
  }
  written &= std::fflush(stdout) == 0;
  if (written) return code;
  std::fprintf(stderr, "atunner: standard output cannot be written: %s\n", std::strerror(errno));
  return atunner::ExitCode(atunner::ErrorCode::kUnavailable);
}
