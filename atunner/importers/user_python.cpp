#include "atunner/importers/user_python.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "atunner/base/command.h"

namespace atunner::importers {
namespace {

constexpr std::string_view kEnding = ".py";
constexpr size_t kMostBytes = 1500;

}  // namespace

PythonName PythonNameOf(const std::string& text) {
  const size_t colon = text.rfind(".py:");
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon + kEnding.size()), text.substr(colon + kEnding.size() + 1)};
}

bool IsPythonFile(const std::string& text) {
  return PythonNameOf(text).file.extension() == kEnding;
}

Result<Path> FindPython(const std::string& purpose) {
  const char* named = std::getenv("ATUNNER_PYTHON");
  const std::string name = named != nullptr && *named != 0 ? named : "python3";
  if (const auto found = FindProgram(name)) return *found;
  return Fail(ErrorCode::kUnavailable, fmt::format("{}, and '{}' is not found", purpose, name), "",
              "name a Python that has PyTorch by $ATUNNER_PYTHON");
}

std::string EndOfLog(const Path& log) {
  std::string text = ReadFile(log).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() <= kMostBytes ? text : "…" + text.substr(text.size() - kMostBytes);
}

}  // namespace atunner::importers
