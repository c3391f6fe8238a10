#include "atunner/importers/python_model.h"

#include <fmt/format.h>

#include <cstdlib>
#include <expected>
#include <filesystem>
#include <string_view>
#include <utility>

#include "atunner/base/command.h"
#include "embed/python_model.h"

namespace atunner::importers {
namespace {

constexpr std::string_view kEnding = ".py";
constexpr size_t kMostBytes = 1500;  // of Python's messages; the reason stands at their end

struct Source {
  Path file;
  std::string class_name;  ///< empty if not named
};

Source SourceOf(const std::string& name) {
  const size_t colon = name.rfind(".py:");
  if (colon == std::string::npos) return {name, ""};
  return {name.substr(0, colon + kEnding.size()), name.substr(colon + kEnding.size() + 1)};
}

Result<Path> FindPython() {
  const char* named = std::getenv("ATUNNER_PYTHON");
  const std::string name = named != nullptr && *named != 0 ? named : "python3";
  if (const auto found = FindProgram(name)) return *found;
  return Fail(ErrorCode::kUnavailable,
              fmt::format("a Python model is exported by Python, and '{}' is not found", name), "",
              "name a Python that has PyTorch by ATUNNER_PYTHON");
}

/// The package's modules that an export needs, without those that run plans.
Status WritePackage(const Path& folder) {
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "__init__.py", ""));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "_program.py", embed::kProgramPy));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "_capture.py", embed::kCapturePy));
  return WriteFileAtomic(folder / "_model.py", embed::kModelPy);
}

std::string EndOf(const Path& log) {
  std::string text = ReadFile(log).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() <= kMostBytes ? text : "…" + text.substr(text.size() - kMostBytes);
}

std::unexpected<Error> Failure(int exit_code, const std::string& name, const Path& python,
                               const Path& log) {
  switch (exit_code) {
    case 2:
      return Invalid(EndOf(log), name);
    case 3:
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("a Python model is exported by PyTorch, which '{}' does not have",
                              python.string()),
                  name, "install it there, or name another Python by ATUNNER_PYTHON");
    default:
      return Invalid(fmt::format("'{}' cannot export it:\n{}", python.string(), EndOf(log)), name);
  }
}

}  // namespace

bool IsPythonModel(const std::string& name) { return SourceOf(name).file.extension() == kEnding; }

Result<ExportedModel> ExportPythonModel(const std::string& name) {
  const Source source = SourceOf(name);
  if (!Exists(source.file)) return Invalid("there is no such file", source.file.string());
  ATUNNER_TRY(const Path python, FindPython());
  ATUNNER_TRY(TemporaryDirectory folder, TemporaryDirectory::Make());
  ATUNNER_RETURN_IF_ERROR(WritePackage(folder.path() / "atunner"));
  const Path archive = folder.path() / (source.file.stem().string() + ".pt2");
  const Path log = folder.path() / "log";
  // The code finds its own package first; the user's file adds its folder.
  const std::string start = fmt::format(
      "import sys; sys.path.insert(0, r'{}'); from atunner._model import main; sys.exit(main())",
      folder.path().string());
  const std::string file = std::filesystem::absolute(source.file).string();
  ATUNNER_TRY(
      const int exit_code,
      RunCommand({python.string(), "-c", start, file, source.class_name, archive.string()}, log));
  if (exit_code != 0) return Failure(exit_code, name, python, log);
  return ExportedModel{std::move(folder), archive};
}

}  // namespace atunner::importers
