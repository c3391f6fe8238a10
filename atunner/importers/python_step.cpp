#include "atunner/importers/python_step.h"

#include <fmt/format.h>

#include <utility>

#include "atunner/base/command.h"
#include "atunner/importers/user_python.h"

namespace atunner::importers {
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

}  // namespace

Result<WrittenSteps> WriteSteps(const std::string& text, const std::vector<int64_t>& batches) {
  const PythonName name = PythonNameOf(text);
  if (!Exists(name.file)) return Invalid("there is no such file", name.file.string());
  ATUNNER_TRY(const Path python, FindPython("a training step is written by Python"));
  ATUNNER_TRY(TemporaryDirectory folder, TemporaryDirectory::Make());
  const std::string out = folder.path().string();
  const std::string function = name.part.empty() ? "make_step" : name.part;
  std::vector<std::string> command = {python.string(), "-c",    kBegin, name.file.string(),
                                      function,        "--out", out};
  WrittenSteps steps{std::move(folder), {}};
  if (!batches.empty()) command.emplace_back("--batch");
  for (const int64_t batch : batches) {
    command.push_back(std::to_string(batch));
    steps.files.push_back(fmt::format("{}/{}/model.json", out, batch));
  }
  if (batches.empty()) steps.files.push_back(out + "/model.json");
  const Path log = steps.folder.path() / "log";
  ATUNNER_TRY(const int ended, RunCommand(std::move(command), log));
  if (ended == kMissing)
    return Fail(ErrorCode::kUnavailable, python.string() + " lacks the package " + EndOfLog(log),
                text,
                "a step is written by your own PyTorch (1.13 or later) with the package atunner: "
                "PYTHONPATH=…/faces/python, or name another Python with $ATUNNER_PYTHON");
  if (ended != 0)
    return Invalid("no training step was made: " + EndOfLog(log), text,
                   "the function returns model, loss, optimizer, batch");
  return steps;
}

}  // namespace atunner::importers
