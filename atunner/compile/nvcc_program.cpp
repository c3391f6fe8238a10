#include "atunner/compile/nvcc_program.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "atunner/base/command.h"

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

}  // namespace

std::optional<Path> FindNvcc() {
  if (const char* home = std::getenv("CUDA_HOME")) {
    if (const auto nvcc = FindProgram(std::string(home) + "/bin/nvcc")) return nvcc;
  }
  const auto nvcc = FindProgram("nvcc");
  return nvcc ? nvcc : FindProgram("/usr/local/cuda/bin/nvcc");
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
  ATUNNER_TRY(const int exit_code, RunCommand(std::move(command), log));
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
