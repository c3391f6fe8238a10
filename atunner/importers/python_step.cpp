#include "atunner/importers/python_step.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "atunner/base/command.h"
#include "atunner/importers/user_python.h"
#include "atunner/model/json/json.h"

namespace atunner::importers {
namespace {

/// Ends with 3 and the packages that are missing; else calls the function {} of the package.
constexpr const char* kBegin =
    "import importlib.util as util, sys\n"
    "missing = [n for n in ('torch', 'atunner') if util.find_spec(n) is None]\n"
    "if missing:\n"
    "    print(' and '.join(missing), file=sys.stderr)\n"
    "    sys.exit(3)\n"
    "from atunner._step_files import {0}\n"
    "{0}(sys.argv[1:])\n";
constexpr int kMissing = 3;

/// Calls a function of the package with the file, its function, `arguments` and a folder for what
/// it writes.
Result<TemporaryDirectory> RunPackage(const std::string& text, std::string_view called,
                                      const std::vector<std::string>& arguments) {
  const PythonName name = PythonNameOf(text);
  if (!Exists(name.file)) return Invalid("there is no such file", name.file.string());
  ATUNNER_TRY(const Path python, FindPython("a training step is written by Python"));
  ATUNNER_TRY(TemporaryDirectory folder, TemporaryDirectory::Make());
  const std::string function = name.part.empty() ? "make_step" : name.part;
  std::vector<std::string> command = {python.string(),       "-c",     fmt::format(kBegin, called),
                                      name.file.string(),    function, "--out",
                                      folder.path().string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Path log = folder.path() / "log";
  ATUNNER_TRY(const int ended, RunCommand(std::move(command), log));
  if (ended == kMissing)
    return Fail(ErrorCode::kUnavailable, python.string() + " lacks the package " + EndOfLog(log),
                text,
                "a step is written by your own PyTorch (1.13 or later) with the package atunner: "
                "PYTHONPATH=…/faces/python, or name another Python with $ATUNNER_PYTHON");
  if (ended != 0)
    return Invalid("no training step was made: " + EndOfLog(log), text,
                   "the function returns model, loss, optimizer, batch");
  return folder;
}

}  // namespace

Result<WrittenSteps> WriteSteps(const std::string& text, const std::vector<int64_t>& batches) {
  std::vector<std::string> arguments;
  if (!batches.empty()) arguments.emplace_back("--batch");
  for (const int64_t batch : batches) arguments.push_back(std::to_string(batch));
  ATUNNER_TRY(TemporaryDirectory folder, RunPackage(text, "main", arguments));
  WrittenSteps steps{std::move(folder), {}};
  const std::string out = steps.folder.path().string();
  for (const int64_t batch : batches)
    steps.files.push_back(fmt::format("{}/{}/model.json", out, batch));
  if (batches.empty()) steps.files.push_back(out + "/model.json");
  return steps;
}

Result<StepVerdict> VerifyStep(const std::string& text, int64_t steps,
                               const std::string& target_gpu) {
  const std::string program = SelfExecutable().string();
  ATUNNER_TRY(const TemporaryDirectory folder,
              RunPackage(text, "verify",
                         {"--steps", std::to_string(steps), "--target-gpu", target_gpu, "--program",
                          program}));
  StepVerdict verdict;
  ATUNNER_TRY(verdict.json, ReadFile(folder.path() / "report.json"));
  ATUNNER_TRY(verdict.text, ReadFile(folder.path() / "report.txt"));
  const Json report = Json::parse(verdict.json, nullptr, false);
  verdict.passed = report.is_object() && report.value("passed", false);
  return verdict;
}

}  // namespace atunner::importers
