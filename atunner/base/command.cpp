#include "atunner/base/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

extern char** environ;

namespace atunner {
namespace {

bool IsProgram(const Path& file) { return access(file.c_str(), X_OK) == 0 && !IsFolder(file); }

}  // namespace

std::optional<Path> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return IsProgram(name) ? std::optional<Path>(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (IsProgram(Path(folder) / name)) return Path(folder) / name;
  }
  return std::nullopt;
}

Result<int> RunCommand(std::vector<std::string> command, const Path& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& text : command) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawn(&process, command[0].c_str(), &actions, nullptr, arguments.data(),
                                 environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("'{}' cannot be run: {}", command[0], std::strerror(failed)));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace atunner
