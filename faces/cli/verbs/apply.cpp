// `apply`: runs an unmodified program with tuned kernels in the place of its own.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/jobs/captures/optimize_capture.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/capture_flags.h"
#include "faces/recorder/apply_program.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

struct ApplyFlags {
  std::string folder;
  std::string target = "auto";
  bool patch = false;
};

/// Prints the changes of the source of all kernels in the folder.
Result<int> PrintPatches(const ApplyFlags& flags) {
  bool any = false;
  for (const Path& folder : recorder::ReplacementsIn(flags.folder)) {
    const auto patch = ReadFile(folder / jobs::kPatchFile);
    if (patch) fmt::print("{}", *patch);
    any |= patch && !patch->empty();
  }
  if (any) return 0;
  return Fail(ErrorCode::kNotFound, "no kernel here has a change of its source", flags.folder,
              "tune it from its source: build the program with -lineinfo, or give --source");
}

Json AppliedJson(const recorder::AppliedProgram& applied) {
  Json json = capture::ToJson(applied.report);
  json.erase("process");
  json["exit_code"] = applied.ending.exit_code;
  json["signal"] = applied.ending.signal;
  return json;
}

std::string Told(const capture::AppliedLaunch& launch) {
  if (launch.launches == 0)
    return launch.reason.empty() ? "not launched" : "not replaced: " + launch.reason;
  std::string text = fmt::format("{} of {} launches replaced, first result {}", launch.replaced,
                                 launch.launches, Name(launch.verdict));
  if (launch.error > 0) text += fmt::format(" (largest difference {:.1e})", launch.error);
  if (launch.in_graphs > 0)
    text += fmt::format("; {} launches of graphs keep the original", launch.in_graphs);
  if (!launch.reason.empty()) text += "; " + launch.reason;
  return text;
}

/// What became of the kernels, on standard error: standard output is the program's.
void Print(const recorder::AppliedProgram& applied) {
  for (const capture::AppliedLaunch& launch : applied.report.launches) {
    const Dim3 &grid = launch.configuration.grid, &block = launch.configuration.block;
    fmt::print(stderr, "atunner: {} <<<{}x{}x{}, {}x{}x{}>>>: {}\n", Printable(launch.kernel),
               grid.x, grid.y, grid.z, block.x, block.y, block.z, Told(launch));
  }
  for (const std::string& error : applied.report.errors) fmt::print(stderr, "atunner: {}\n", error);
  if (!applied.ending.well()) fmt::print(stderr, "atunner: {}\n", applied.ending.ToString());
}

Result<int> Apply(const ApplyFlags& flags, const Context& context) {
  if (flags.patch) return PrintPatches(flags);
  Machine machine(context.common.store);
  CaptureFlags like;
  like.target = flags.target;
  ATUNNER_TRY(const Target target, TargetOfCapture(like, context, machine.services()));
  ATUNNER_TRY(const recorder::AppliedProgram applied,
              recorder::ApplyProgram({flags.folder, context.program, target.profile,
                                      target.real_index.has_value(), context.common.json}));
  if (context.common.json)
    PrintJson(AppliedJson(applied));
  else if (!context.common.quiet)
    Print(applied);
  return applied.ending.signal != 0 ? 1 : applied.ending.exit_code;
}

}  // namespace

void AddApply(VerbList& verbs) {
  const auto flags = std::make_shared<ApplyFlags>();
  CLI::App* verb = verbs.Add("apply", "run a program with tuned kernels in the place of its own",
                             [flags](const Context& c) { return Apply(*flags, c); });
  verb->footer("atunner apply best/ -- ./app ARGUMENTS\natunner apply best/ --patch > faster.diff");
  verb->add_option("folder", flags->folder, "what optimize of a capture has written")->required();
  verb->add_option("--target-gpu", flags->target, "the GPU to run on");
  verb->add_flag("--patch", flags->patch,
                 "print the changes of the sources instead, for patch -p1");
}

}  // namespace atunner::cli
