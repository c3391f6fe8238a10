#include "atunner/compile/nvcc_program.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>

#include "atunner/base/command.h"
#include "atunner/compile/nvcc_options.h"

namespace atunner {
namespace {

constexpr size_t kMostLines = 12;  // of nvcc's messages

/// The first lines of a text.
std::string Beginning(const std::string& text) {
  std::istringstream lines(text);
  std::string beginning;
  size_t count = 0;
  for (std::string line; std::getline(lines, line) && count < kMostLines; ++count)
    beginning += (count == 0 ? "" : "\n") + line;
  return beginning;
}

std::vector<std::string> CommandOf(const Path& nvcc, const NvccRequest& request,
                                   const std::vector<std::string>& options,
                                   const std::vector<Path>& sources) {
  std::vector<std::string> command = {
      nvcc.string(), "-O3", "-lineinfo",
      fmt::format("-gencode=arch=compute_{0},code=compute_{0}", request.arch)};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-o", request.program.string()});
  for (const Path& source : sources) command.push_back(source.string());
  return command;
}

}  // namespace

std::optional<Path> FindNvcc() {
  if (const char* home = std::getenv("CUDA_HOME")) {
    if (const auto nvcc = FindProgram(std::string(home) + "/bin/nvcc")) return nvcc;
  }
  const auto nvcc = FindProgram("nvcc");
  return nvcc ? nvcc : FindProgram("/usr/local/cuda/bin/nvcc");
}

Status BuildProgram(const NvccRequest& request) {
  constexpr int kAttempts = 8;
  const auto nvcc = FindNvcc();
  if (!nvcc)
    return Fail(ErrorCode::kUnavailable, "nvcc is not installed, which builds the program", "",
                "install the CUDA toolkit, or set CUDA_HOME");
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  const Path log = folder.path() / "log";
  std::vector<std::string> options = request.options;
  const std::string text = ReadFile(request.source).value_or("");
  for (const std::string& option : OptionsForSource(text)) options.push_back(option);
  std::vector<Path> sources = {std::filesystem::absolute(request.source)};
  std::string messages;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ATUNNER_TRY(const int exit_code, RunCommand(CommandOf(*nvcc, request, options, sources), log));
    if (exit_code == 0) return {};
    const std::string now = ReadFile(log).value_or("");
    const auto remedy = FindNvccRemedy(now, request.source, options, folder.path() / "headers");
    messages = now;
    if (!remedy || (sources.size() > 1 && remedy->options.empty())) break;
    options.insert(options.end(), remedy->options.begin(), remedy->options.end());
    if (sources.size() == 1)
      sources.insert(sources.end(), remedy->sources.begin(), remedy->sources.end());
  }
  return Invalid("nvcc does not build it:\n" + Beginning(messages), request.source.string(),
                 "give its options by --nvcc \"-I… -D… -std=…\"");
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
