// `capture` records what a program launches; `show` of a capture lists its kernels.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/capture/capture_reader.h"
#include "atunner/compile/nvcc_program.h"
#include "atunner/jobs/captures/kernel_shares.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/output/progress.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/capture_flags.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {

Result<Target> TargetOfCapture(const CaptureFlags& flags, const Context& context,
                               jobs::Services& services) {
  jobs::Devices& devices = services.devices;
  if (flags.target != "auto" || devices.HasGpu()) return devices.Choose({flags.target, false});
  const std::string gpu = context.program.empty() || !flags.source.empty()
                              ? "A100"
                              : program::GpuForProgram(context.program[0]);
  return devices.Choose({gpu, true});
}

Result<recorder::CapturedProgram> Capture(const CaptureFlags& flags, const Context& context,
                                          const Target& target) {
  recorder::CaptureRequest request;
  request.command = context.program;
  request.source = flags.source;
  request.nvcc_options = SplitOptions(flags.nvcc);
  request.profile = target.profile;
  request.real = target.real_index.has_value();
  request.limits.launches_of_kernel = flags.launches;
  request.limits.snapshot_bytes = static_cast<uint64_t>(flags.max_snapshot_gb * 1e9);
  request.out = flags.out;
  request.apart = context.common.json;
  return recorder::CaptureProgram(request);
}

void PrintProblems(const recorder::CapturedProgram& captured) {
  for (const std::string& error : captured.errors) fmt::print(stderr, "atunner: {}\n", error);
  if (!captured.ending.well()) fmt::print(stderr, "atunner: {}\n", captured.ending.ToString());
}

namespace {

std::string ShapeText(const capture::LaunchConfiguration& shape) {
  const auto text = [](const Dim3& dim) {
    return dim.y == 1 && dim.z == 1 ? std::to_string(dim.x)
                                    : fmt::format("{}x{}x{}", dim.x, dim.y, dim.z);
  };
  return fmt::format("<<<{}, {}>>>", text(shape.grid), text(shape.block));
}

Json ShareJson(const capture::Capture& capture, const jobs::KernelShare& share) {
  Json json{{"kernel", capture.kernels[share.kernel].readable},
            {"name", capture.kernels[share.kernel].name},
            {"launches", share.launches},
            {"configurations", share.configurations},
            {"seconds", share.seconds},
            {"share", share.share},
            {"evidence", Name(share.evidence)},
            {"obstacle", share.obstacle},
            {"shapes", Json::array()}};
  for (const capture::LaunchGroup& group : capture.groups) {
    if (group.kernel == share.kernel)
      json["shapes"].push_back(
          {{"launch", ShapeText(group.configuration)}, {"launches", group.launches}});
  }
  return json;
}

void PrintShare(const capture::Capture& capture, const jobs::KernelShare& share) {
  const std::string shape = share.launch != nullptr ? ShapeText(share.launch->configuration) : "";
  fmt::print("{:>5}  {:>10}  {:>8}  {:<24} {}{}\n",
             share.share > 0 ? fmt::format("{:.0f} %", 100 * share.share) : "-",
             share.seconds > 0 ? FormatTime(share.seconds * 1e9) : "-", share.launches, shape,
             Printable(capture.kernels[share.kernel].readable),
             share.obstacle.empty() ? "" : "\n       cannot be tuned: " + share.obstacle);
}

void Print(const capture::Capture& capture, const std::vector<jobs::KernelShare>& shares) {
  std::string command = capture.head.program;
  for (const std::string& argument : capture.head.arguments) command += " " + argument;
  uint64_t launches = 0;
  for (const jobs::KernelShare& share : shares) launches += share.launches;
  fmt::print("{}: {} launches of {} kernels, recorded on {} {}\n", Printable(command), launches,
             shares.size(),
             capture.head.evidence == Evidence::kPredicted ? "the virtual" : "a real",
             capture.head.gpu);
  if (capture.endings.empty())
    fmt::print("the recording was cut short: what came later is missing\n");
  for (const capture::CaptureEnding& ending : capture.endings) {
    const program::Ending how{ending.exit_code, ending.signal};
    if (!how.well()) fmt::print("{}\n", how.ToString());
  }
  const bool predicted = capture.head.evidence == Evidence::kPredicted ||
                         std::ranges::any_of(shares, [](const jobs::KernelShare& share) {
                           return share.evidence == Evidence::kPredicted && share.seconds > 0;
                         });
  fmt::print("share  {:>10}  launches  {:<24} kernel\n", predicted ? "predicted" : "measured",
             "largest launch");
  for (const jobs::KernelShare& share : shares) PrintShare(capture, share);
  for (const std::string& note : capture.notes) fmt::print("note: {}\n", note);
}

Result<int> CaptureAndTell(const CaptureFlags& flags, const Context& context) {
  Machine machine(context.common.store);
  ATUNNER_TRY(const Target target, TargetOfCapture(flags, context, machine.services()));
  ATUNNER_TRY(const recorder::CapturedProgram captured, Capture(flags, context, target));
  ATUNNER_TRY(const capture::Capture found, capture::ReadCapture(captured.folder));
  uint64_t launches = 0;
  for (const capture::LaunchGroup& group : found.groups) launches += group.launches;
  if (context.common.json) {
    PrintJson({{"capture", captured.folder.string()},
               {"kernels", found.kernels.size()},
               {"launches", launches},
               {"recorded", found.launches.size()},
               {"exit_code", captured.ending.exit_code},
               {"signal", captured.ending.signal},
               {"errors", captured.errors}});
  } else {
    PrintProblems(captured);
    fmt::print(
        "{}: {} launches of {} kernels, {} with their memory. `atunner show {}` lists "
        "them\n",
        captured.folder.string(), launches, found.kernels.size(), found.launches.size(),
        captured.folder.string());
  }
  return captured.ending.well() && captured.errors.empty() ? 0 : 1;
}

}  // namespace

Result<int> ShowCapture(const ShowFlags& flags, const Context& context) {
  ATUNNER_TRY(const capture::Capture capture, capture::ReadCapture(flags.folder));
  Machine machine(context.common.store);
  jobs::Services& services = machine.services();
  ATUNNER_TRY(
      const Target target,
      services.devices.Choose({flags.target.empty() ? capture.head.gpu : flags.target, true}));
  Progress progress(
      {.silent = context.common.quiet || context.common.json, .explain = context.common.explain});
  ATUNNER_TRY(const std::vector<jobs::KernelShare> shares,
              jobs::SharesOf(capture, flags.folder, target, !flags.no_times, services,
                             std::ref(progress), InterruptToken()));
  if (!context.common.json) {
    Print(capture, shares);
    return 0;
  }
  Json json{{"program", capture.head.program},
            {"arguments", capture.head.arguments},
            {"gpu", capture.head.gpu},
            {"evidence", Name(capture.head.evidence)},
            {"complete", !capture.endings.empty()},
            {"kernels", Json::array()},
            {"notes", capture.notes}};
  for (const jobs::KernelShare& share : shares)
    json["kernels"].push_back(ShareJson(capture, share));
  PrintJson(json);
  return 0;
}

void AddCapture(VerbList& verbs) {
  const auto flags = std::make_shared<CaptureFlags>();
  CLI::App* verb = verbs.Add("capture", "record what a program launches, for show and optimize",
                             [flags](const Context& c) { return CaptureAndTell(*flags, c); });
  verb->footer(
      "atunner capture -- ./app ARGUMENTS\n"
      "atunner capture --source main.cu --nvcc \"-std=c++17\" -- ARGUMENTS");
  verb->add_option("--source", flags->source, "a .cu file that nvcc builds first");
  verb->add_option("--nvcc", flags->nvcc, "options for nvcc: \"-I.. -DN=4 -lcublas\"");
  verb->add_option("--target-gpu", flags->target, "the GPU to record on");
  verb->add_option("--out", flags->out, "folder of the capture; default: NAME.capture");
  verb->add_option("--launches", flags->launches, "launches of each kernel to record with memory")
      ->check(Positive());
  verb->add_option("--max-snapshot", flags->max_snapshot_gb,
                   "GB of memory that a recorded launch may reach")
      ->check(Positive());
}

}  // namespace atunner::cli
