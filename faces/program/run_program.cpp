#include "faces/program/run_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "atunner/device/profiles.h"
#include "faces/program/fat_binary.h"

namespace atunner::program {
namespace {

/// The library stands beside the executable, or in lib/ where that is installed in bin/.
Result<Path> LibraryOfPrograms(const std::string& library) {
  const Path folder = SelfExecutable().parent_path();
  for (const Path& place : {folder, folder.parent_path() / "lib", folder.parent_path() / "lib64",
                            folder.parent_path() / "lib/x86_64-linux-gnu"}) {
    if (Exists(place / library)) return place / library;
  }
  return Fail(ErrorCode::kUnavailable, library + " is not beside atunner", folder.string(),
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
  for (const int ptx : PtxArchitectures(BytesOf(program))) {
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

}  // namespace

std::string Ending::ToString() const {
  if (signal != 0)
    return fmt::format("the program was ended by signal {} ({})", signal, strsignal(signal));
  return fmt::format("the program ended with exit code {}", exit_code);
}

Result<Ending> RunBehind(const std::string& library,
                         std::vector<std::pair<std::string, std::string>> variables,
                         const std::vector<std::string>& command, bool apart) {
  ATUNNER_TRY(const Path file, LibraryOfPrograms(library));
  const char* other = std::getenv("LD_PRELOAD");
  variables.emplace_back(
      "LD_PRELOAD", file.string() + (other != nullptr ? std::string(":") + other : std::string()));
  return RunProgram(command, EnvironmentWith(variables), apart);
}

Result<Ending> RunUnder(const Order& order, const std::vector<std::string>& command, bool apart) {
  return RunBehind("libatunner_cuda.so", {{kOrderVariable, DumpJson(ToJson(order))}}, command,
                   apart);
}

std::string GpuForProgram(const std::string& command) { return GpuForPtx(NewestPtxOf(command)); }

}  // namespace atunner::program
