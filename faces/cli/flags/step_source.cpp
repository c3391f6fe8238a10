#include "faces/cli/flags/step_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

extern char** environ;

namespace atunner::cli {
namespace {

/// Ends with 3 and the packages that are missing; else does the work.
constexpr const char* kBegin =
    "import importlib.util as util, sys\n"
    "missing = [n for n in ('torch', 'atunner') if util.find_spec(n) is None]\n"
    "if missing:\n"
    "    print(' and '.join(missing), file=sys.stderr)\n"
    "    sys.exit(3)\n"
    "from atunner._step_files import main\n"
    "main(sys.argv[1:])\n";
constexpr int kMissing = 3;

std::string Interpreter() {
  const char* given = std::getenv("ATUNNER_PYTHON");
  return given != nullptr && *given != '\0' ? given : "python3";
}

/// Runs a command to its end; its output and its messages go to `log`.
Result<int> Run(std::vector<std::string> command, const Path& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, command[0].c_str(), &actions, nullptr, arguments.data(),
                                  environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Fail(ErrorCode::kUnavailable, "a training step in Python needs " + command[0], {},
                "install Python 3 with PyTorch, or name the program with $ATUNNER_PYTHON");
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// The last lines of a log: Python's message stands behind its trace.
std::string LastLines(const Path& log) {
  constexpr size_t kMost = 1200;
  std::string text = ReadFile(log).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMost) text = "…" + text.substr(text.size() - kMost);
  return text.empty() ? "it says nothing" : text;
}

struct StepName {
  std::string file;
  std::string function;
};

StepName NameOf(const std::string& text) {
  const size_t colon = text.rfind(".py:");
  if (colon == std::string::npos) return {text, "make_step"};
  return {text.substr(0, colon + 3), text.substr(colon + 4)};
}

}  // namespace

bool IsStepFile(const std::string& text) {
  return text.ends_with(".py") || text.find(".py:") != std::string::npos;
}

Result<WrittenSteps> WriteSteps(const std::string& text, const std::vector<int64_t>& batches) {
  const StepName name = NameOf(text);
  if (!Exists(name.file)) return Invalid("there is no such file", name.file);
  ATUNNER_TRY(TemporaryDirectory folder, TemporaryDirectory::Make());
  const std::string out = folder.path().string();
  std::vector<std::string> command = {Interpreter(), "-c",    kBegin, name.file,
                                      name.function, "--out", out};
  WrittenSteps steps{std::move(folder), {}};
  if (!batches.empty()) command.emplace_back("--batch");
  for (const int64_t batch : batches) {
    command.push_back(std::to_string(batch));
    steps.files.push_back(fmt::format("{}/{}/model.json", out, batch));
  }
  if (batches.empty()) steps.files.push_back(out + "/model.json");
  const Path log = steps.folder.path() / "log";
  ATUNNER_TRY(const int ended, Run(command, log));
  if (ended == kMissing)
    return Fail(ErrorCode::kUnavailable, Interpreter() + " lacks the package " + LastLines(log),
                text,
                "a step is written by your own PyTorch (1.13 or later) with the package atunner: "
                "PYTHONPATH=…/faces/python, or name another Python with $ATUNNER_PYTHON");
  if (ended != 0)
    return Invalid("no training step was made: " + LastLines(log), text,
                   "the function returns model, loss, optimizer, batch");
  return steps;
}

}  // namespace atunner::cli
