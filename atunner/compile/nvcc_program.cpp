#include "atunner/compile/nvcc_program.h"

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

constexpr size_t kMostLines = 12;  // of nvcc's messages

bool IsProgram(const Path& file) { return access(file.c_str(), X_OK) == 0 && !IsFolder(file); }

/// The first lines of a text.
std::string Beginning(const std::string& text) {
  std::istringstream lines(text);
  std::string beginning;
  size_t count = 0;
  for (std::string line; std::getline(lines, line) && count < kMostLines; ++count)
    beginning += (count == 0 ? "" : "\n") + line;
  return beginning;
}

/// Runs a command to its end. Its output goes to `log`.
Result<int> Run(std::vector<std::string> command, const Path& log) {
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

}  // namespace

std::optional<Path> FindNvcc() {
  std::vector<Path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(Path(home) / "bin");
  const char* path = std::getenv("PATH");
  std::istringstream list(path != nullptr ? path : "");
  for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda/bin");
  for (const Path& folder : folders) {
    if (IsProgram(folder / "nvcc")) return folder / "nvcc";
  }
  return std::nullopt;
}

Status BuildProgram(const NvccRequest& request) {
  const auto nvcc = FindNvcc();
  if (!nvcc)
    return Fail(ErrorCode::kUnavailable, "nvcc is not installed, which builds the program", "",
                "install the CUDA toolkit, or set CUDA_HOME");
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  const Path log = folder.path() / "log";
  std::vector<std::string> command = {
      nvcc->string(), "-O3", "-lineinfo",
      fmt::format("-gencode=arch=compute_{0},code=compute_{0}", request.arch)};
  command.insert(command.end(), request.options.begin(), request.options.end());
  command.insert(command.end(), {"-o", request.program.string(),
                                 std::filesystem::absolute(request.source).string()});
  ATUNNER_TRY(const int exit_code, Run(std::move(command), log));
  if (exit_code == 0) return {};
  return Invalid("nvcc does not build it:\n" + Beginning(ReadFile(log).value_or("")),
                 request.source.string(), "give its options by --nvcc \"-I… -D… -std=…\"");
}

std::vector<std::string> SplitOptions(const std::string& text) {
  std::vector<std::string> options;
  std::string one;
  char quote = 0;
  bool any = false;
  for (const char c : text) {
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c, any = true;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && c == ' ') {
      if (any) options.push_back(std::exchange(one, ""));
      any = false;
    } else {
      one += c, any = true;
    }
  }
  if (any) options.push_back(one);
  return options;
}

}  // namespace atunner
