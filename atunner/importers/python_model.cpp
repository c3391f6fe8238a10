#include "atunner/importers/python_model.h"

#include <fmt/format.h>

#include <expected>
#include <filesystem>
#include <utility>

#include "atunner/base/command.h"
#include "atunner/importers/user_python.h"
#include "embed/python_model.h"

namespace atunner::importers {
namespace {

/// The package's modules that an export needs, without those that run plans.
Status WritePackage(const Path& folder) {
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "__init__.py", ""));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "_program.py", embed::kProgramPy));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "_capture.py", embed::kCapturePy));
  return WriteFileAtomic(folder / "_model.py", embed::kModelPy);
}

std::unexpected<Error> Failure(int exit_code, const std::string& name, const Path& python,
                               const Path& log) {
  switch (exit_code) {
    case 2:
      return Invalid(EndOfLog(log), name);
    case 3:
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("a Python model is exported by PyTorch, which '{}' does not have",
                              python.string()),
                  name, "install it there, or name another Python by $ATUNNER_PYTHON");
    default:
      return Invalid(fmt::format("'{}' cannot export it:\n{}", python.string(), EndOfLog(log)),
                     name);
  }
}

}  // namespace

Result<ExportedModel> ExportPythonModel(const std::string& name) {
  const PythonName source = PythonNameOf(name);
  if (!Exists(source.file)) return Invalid("there is no such file", source.file.string());
  ATUNNER_TRY(const Path python, FindPython("a Python model is exported by Python"));
  ATUNNER_TRY(TemporaryDirectory folder, TemporaryDirectory::Make());
  ATUNNER_RETURN_IF_ERROR(WritePackage(folder.path() / "atunner"));
  const Path archive = folder.path() / (source.file.stem().string() + ".pt2");
  const Path log = folder.path() / "log";
  // The code finds its own package first; the user's file adds its folder.
  const std::string start = fmt::format(
      "import sys; sys.path.insert(0, r'{}'); from atunner._model import main; sys.exit(main())",
      folder.path().string());
  const std::string file = std::filesystem::absolute(source.file).string();
  ATUNNER_TRY(const int exit_code,
              RunCommand({python.string(), "-c", start, file, source.part, archive.string()}, log));
  if (exit_code != 0) return Failure(exit_code, name, python, log);
  return ExportedModel{std::move(folder), archive};
}

}  // namespace atunner::importers
