// `sanitize -- PROGRAM`: a whole program, with the virtual GPU in the place of CUDA's driver and
// runtime.
#include "faces/cli/verbs/sanitize_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/jobs/kernels/hazard_checks.h"
#include "atunner/jobs/kernels/loaded_kernel.h"
#include "faces/cli/output/hazard_text.h"
#include "faces/cli/output/render.h"
#include "faces/program/fat_binary.h"
#include "faces/program/findings.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// How the program ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;
  bool well() const { return exit_code == 0 && signal == 0; }
  std::string ToString() const {
    if (signal != 0)
      return fmt::format("the program was ended by signal {} ({})", signal, strsignal(signal));
    return fmt::format("the program ended with exit code {}", exit_code);
  }
};

/// The library stands beside the executable, or in lib/ where that is installed in bin/.
Result<Path> LibraryOfPrograms() {
  const Path folder = SelfExecutable().parent_path();
  for (const Path& place : {folder, folder.parent_path() / "lib", folder.parent_path() / "lib64",
                            folder.parent_path() / "lib/x86_64-linux-gnu"}) {
    if (Exists(place / "libatunner_cuda.so")) return place / "libatunner_cuda.so";
  }
  return Fail(ErrorCode::kUnavailable, "libatunner_cuda.so is not beside atunner", folder.string(),
              "`make build` puts it there");
}

std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool replaced = std::ranges::any_of(
        values, [&](const auto& value) { return text.starts_with(value.first + "="); });
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : values) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs it to its end. `apart`: what it prints goes to standard error.
Result<Ending> RunProgram(std::vector<std::string> command, std::vector<std::string> environment,
                          bool apart) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (apart) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, command[0].c_str(), &actions, nullptr,
                                  Pointers(command).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Invalid(fmt::format("'{}' cannot be run: {}", command[0], std::strerror(failed)));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  Ending ending;
  if (WIFSIGNALED(status))
    ending.signal = WTERMSIG(status);
  else
    ending.exit_code = WEXITSTATUS(status);
  return ending;
}

/// The executable's bytes; it is found as the shell finds it.
std::string BytesOf(const std::string& command) {
  if (command.contains('/')) return ReadFile(command).value_or("");
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders != nullptr ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    const Path file = Path(folder) / command;
    if (access(file.c_str(), X_OK) == 0) return ReadFile(file).value_or("");
  }
  return "";
}

int ArchitectureOf(const DeviceProfile& profile) {
  return profile.cc_major * 10 + profile.cc_minor;
}

/// The newest architecture that the program has PTX for and that the virtual GPU runs; 0 for none.
int NewestPtxOf(const std::string& program) {
  constexpr int kNewest = 90;
  int newest = 0;
  for (const int ptx : program::PtxArchitectures(BytesOf(program))) {
    if (ptx <= kNewest) newest = std::max(newest, ptx);
  }
  return newest;
}

/// The name of the oldest GPU that runs PTX of this architecture; an A100 where it can.
std::string GpuForPtx(int newest) {
  constexpr int kA100 = 80;
  std::string name = "A100";
  int best = INT_MAX;
  for (const DeviceProfile& profile : KnownProfiles()) {
    const int architecture = ArchitectureOf(profile);
    if (newest <= kA100 || architecture < newest || architecture >= best) continue;
    best = architecture;
    name = profile.name;
  }
  return name;
}

/// Without a GPU here and without a name: an A100 or, where the program was built for later GPUs,
/// the first of those.
Result<Target> TargetOfProgram(const SanitizeFlags& flags, jobs::Devices& devices) {
  ATUNNER_TRY(jobs::KernelRequest request, flags.kernel.Request());
  if (request.gpu == "auto" && !devices.HasGpu())
    request.gpu = GpuForPtx(NewestPtxOf(flags.program[0]));
  return jobs::TargetOf(request, devices);
}

void PrintFindings(const program::Findings& found, const SanitizeFlags& flags, const Target& target,
                   SourceLines& source) {
  const size_t shown = std::min(flags.max_reports, found.hazards.size());
  for (size_t i = 0; i < shown; ++i) PrintHazard(found.hazards[i], source);
  if (shown < found.hazards.size()) fmt::print("… and {} more\n", found.hazards.size() - shown);
  for (const std::string& error : found.errors) fmt::print("error: {}\n", error);
  fmt::print("{}: {} in {} launch{} of {} block{}, virtual {}, checks: {}\n", flags.program[0],
             HowMany(found.hazards.size()), found.launches, found.launches == 1 ? "" : "es",
             found.blocks, found.blocks == 1 ? "" : "s", target.profile.name, flags.checks);
}

Json FindingsJson(const program::Findings& found, const SanitizeFlags& flags, const Target& target,
                  const Ending& ending, SourceLines& source) {
  Json json{{"program", flags.program},
            {"target", target.profile.name},
            {"checks", flags.checks},
            {"launches", found.launches},
            {"blocks", found.blocks},
            {"exit_code", ending.signal != 0 ? Json() : Json(ending.exit_code)},
            {"signal", ending.signal != 0 ? Json(ending.signal) : Json()},
            {"errors", found.errors},
            {"found", found.hazards.size()},
            {"hazards", Json::array()}};
  for (size_t i = 0; i < std::min(flags.max_reports, found.hazards.size()); ++i)
    json["hazards"].push_back(HazardJson(found.hazards[i], source));
  return json;
}

/// Runs the program with the virtual GPU in front of CUDA; its findings go to the order's report.
Result<Ending> RunUnder(const program::Order& order, const std::vector<std::string>& command,
                        bool apart) {
  ATUNNER_TRY(const Path library, LibraryOfPrograms());
  const char* other = std::getenv("LD_PRELOAD");
  const std::string preloaded = library.string() +
                                (other != nullptr ? std::string(":") + other : std::string());
  return RunProgram(command,
                    EnvironmentWith({{program::kOrderVariable, DumpJson(ToJson(order))},
                                     {"LD_PRELOAD", preloaded}}),
                    apart);
}

void Print(const program::Findings& found, const SanitizeFlags& flags, const Target& target,
           const Ending& ending, bool json) {
  SourceLines source("", "", Path(flags.program[0]).parent_path());
  if (json) {
    PrintJson(FindingsJson(found, flags, target, ending, source));
    return;
  }
  PrintFindings(found, flags, target, source);
  if (!ending.well()) fmt::print("{}\n", ending.ToString());
}

}  // namespace

Result<int> SanitizeProgram(const SanitizeFlags& flags, const Common& common) {
  Machine machine(common.store);
  ATUNNER_TRY(const Target target, TargetOfProgram(flags, machine.services().devices));
  ATUNNER_TRY(const uint8_t groups, jobs::ParseChecks(flags.checks));
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  const Path report = folder.path() / "report";
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(report, ""));
  const program::Order order{target.profile, groups, flags.kernel.timeout_seconds,
                             flags.max_instructions, report.string()};
  ATUNNER_TRY(const Ending ending, RunUnder(order, flags.program, common.json));
  ATUNNER_TRY(const std::string text, ReadFile(report));
  ATUNNER_TRY(program::Findings found, program::ReadReport(text));
  jobs::JoinSides(found.hazards);
  Print(found, flags, target, ending, common.json);
  if (text.empty() && ending.well())
    return Invalid("the program called nothing of CUDA that could be answered", flags.program[0],
                   "its symbols are needed: do not strip it, or build it with nvcc -cudart shared");
  return found.hazards.empty() && found.errors.empty() && ending.well() ? 0 : 1;
}

}  // namespace atunner::cli
