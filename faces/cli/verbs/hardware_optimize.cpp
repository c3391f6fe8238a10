// `hardware-optimize`: tunes the kernels of a .cu file as they are, or says what was found in it. A
// file with one kernel whose host code says everything is read; other programs are built, run once
// and captured.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/compile/nvcc_program.h"
#include "atunner/jobs/evidence/rewriting.h"
#include "atunner/jobs/requests/user_sources.h"
#include "atunner/jobs/runs/tuning.h"
#include "faces/cli/flags/parse.h"
#include "faces/cli/flags/tuning_flags.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/capture_flags.h"
#include "faces/cli/verbs/rewrite_output.h"
#include "faces/cli/verbs/tuning_output.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// The default; of all kernels of a program together, with building and running it.
constexpr const char* kBudget = "60,90s";

struct SourceFlags {
  std::string source;
  std::string kernel;
  bool auto_tune = false;
  bool rewrite = false;
  std::vector<std::string> dims;
  size_t top = 0;  ///< of several kernels; 0 = all
  CaptureFlags capture;
  TuningFlags tuning;
};

std::string ShapeText(const ArgSpec& arg) {
  std::string text;
  for (const Expr& extent : arg.shape) text += (text.empty() ? "" : ", ") + extent.text();
  return std::string(Name(arg.dtype)) + "[" + text + "]";
}

void PrintParameters(const ParameterSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    std::string values;
    for (const Value& value : parameter.values)
      values += (values.empty() ? "" : ", ") + ToString(value);
    fmt::print("tunable    {} = {}{}\n", parameter.name, values,
               parameter.meaning.empty() ? "" : "  (" + parameter.meaning + ")");
  }
}

/// Prints what was understood of a bare source.
void PrintUnderstood(const UserKernel& kernel) {
  const LaunchStep& step = kernel.plan.steps.front();
  fmt::print("kernel     {}\n", step.entry);
  for (const auto& [name, value] : kernel.spec.dims)
    fmt::print("size       {} = {}\n", name, value);
  for (const ArgSpec& arg : kernel.spec.args)
    fmt::print("argument   {} {} {}\n", arg.name, Name(arg.role), ShapeText(arg));
  fmt::print("grid       {}, {}, {}\nblock      {}, {}, {}\n", step.grid[0].text(),
             step.grid[1].text(), step.grid[2].text(), step.block[0].text(), step.block[1].text(),
             step.block[2].text());
  PrintParameters(kernel.space);
  for (const std::string& note : kernel.notes) fmt::print("note       {}\n", note);
  fmt::print("add --auto-tune to tune it\n");
}

/// Builds and runs the program once, and tunes what it launches. `unread`: why its host code is not
/// enough, or "".
Result<int> TuneProgram(const SourceFlags& flags, const Context& context,
                        const std::string& unread) {
  const double started = SystemClock().Now();
  Machine machine(context.common.store);
  const Path out = flags.tuning.out.empty() ? Path("best") : Path(flags.tuning.out);
  CaptureFlags capture = flags.capture;
  capture.source = flags.source;
  capture.target = flags.tuning.target;
  capture.out = (out / (Path(flags.source).stem().string() + ".capture")).string();
  ATUNNER_TRY(const Target target, TargetOfCapture(capture, context, machine.services()));
  const auto captured = Capture(capture, context, target);
  if (!captured && !unread.empty())
    return Invalid(unread + "\nIts host code was read; running the program failed too: " +
                       captured.error().what,
                   "", captured.error().hint);
  if (!captured) return std::unexpected(captured.error());
  PrintProblems(*captured);
  jobs::OptimizeCaptureRequest request{captured->folder,
                                       flags.kernel,
                                       flags.top,
                                       flags.source,
                                       SplitOptions(flags.capture.nvcc),
                                       {}};
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  if (std::optional<double>& seconds = request.tuning.budget.seconds)
    *seconds = std::max(*seconds / 2, *seconds - (SystemClock().Now() - started));
  request.tuning.out = out;
  request.rewrite = flags.rewrite;
  if (request.tuning.target.gpu == "auto") request.tuning.target.gpu = target.profile.name;
  return RunCaptureTuning(context, request);
}

/// The sizes of --dim.
Result<Dims> SizesOf(const SourceFlags& flags) {
  Dims sizes;
  for (const std::string& text : flags.dims) {
    ATUNNER_TRY(const auto dim, ParseDim(text));
    if (dim.second.size() != 1)
      return Invalid("'" + text + "' names several sizes", "--dim", "give one, as in n=1048576");
    sizes[dim.first] = dim.second.front();
  }
  return sizes;
}

/// Why the source is not tuned by reading it alone; nullopt if it can be.
std::optional<std::string> ReasonToRun(const SourceFlags& flags, const Context& context,
                                       const Dims& sizes) {
  const bool asks = !(flags.auto_tune || flags.rewrite) || !flags.tuning.dump.empty() ||
                    !flags.tuning.stop_after.empty() || !flags.source.ends_with(".cu");
  if (asks || !FindNvcc()) return std::nullopt;
  if (!context.program.empty() || !flags.capture.nvcc.empty()) return "";
  if (flags.kernel.empty() && jobs::KernelsOf(flags.source, "").size() > 1) return "";
  SourceOptions options;
  options.kernel = flags.kernel;
  options.sizes = sizes;
  const auto read = jobs::ReadUserKernel(flags.source, options);
  if (read || read.error().code != ErrorCode::kInvalidInput) return std::nullopt;
  return read.error().ToString();
}

/// Rewrites the kernel, and says what came of each idea.
Result<int> Rewrite(const SourceFlags& flags, const Context& context) {
  jobs::RewriteRequest request{flags.source, flags.kernel, flags.auto_tune, {}};
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  std::optional<jobs::RewriteRecord> record;
  ATUNNER_TRY(const int code, RunTuning(context,
                                        [&](jobs::Services& services, const jobs::EventSink& events,
                                            std::stop_token stop) -> Result<jobs::TuningResult> {
                                          ATUNNER_TRY(jobs::RewriteResult result,
                                                      jobs::RewriteKernel(request, services, events,
                                                                          std::move(stop)));
                                          record = std::move(result.record);
                                          jobs::TuningResult tuned;
                                          tuned.runs.push_back(std::move(result.run));
                                          return tuned;
                                        }));
  if (record && !context.common.json) PrintIdeas(*record);
  return code;
}

Result<int> HardwareOptimize(const SourceFlags& flags, const Context& context) {
  ATUNNER_TRY(const Dims sizes, SizesOf(flags));
  if (const auto reason = ReasonToRun(flags, context, sizes))
    return TuneProgram(flags, context, *reason);
  if (flags.rewrite) return Rewrite(flags, context);
  jobs::HardwareOptimizeRequest request{flags.source, flags.kernel, flags.auto_tune, {}, sizes};
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  return RunTuning(
      context,
      [&](jobs::Services& services, const jobs::EventSink& events,
          std::stop_token stop) -> Result<jobs::TuningResult> {
        ATUNNER_TRY(auto found, jobs::HardwareOptimize(request, services, events, std::move(stop)));
        if (auto* tuned = std::get_if<jobs::TuningResult>(&found)) return std::move(*tuned);
        const auto& understood = std::get<jobs::UnderstoodKernel>(found);
        if (context.common.json)
          PrintJson(jobs::ToJson(understood));
        else
          PrintUnderstood(understood.kernel);
        return jobs::TuningResult{};
      });
}

}  // namespace

void AddHardwareOptimize(VerbList& verbs) {
  const auto flags = std::make_shared<SourceFlags>();
  CLI::App* verb = verbs.Add("hardware-optimize", "tune a kernel in a .cu file as it is",
                             [flags](const Context& c) { return HardwareOptimize(*flags, c); });
  verb->add_option("--source", flags->source, "the .cu file")->required();
  verb->add_option("--kernel", flags->kernel, "which kernel of the file");
  verb->add_option("--dim", flags->dims,
                   "size of a kernel that the file does not launch, n=1048576");
  verb->add_flag("--auto-tune", flags->auto_tune,
                 "tune what was found; without it, only say what was found");
  verb->add_flag("--rewrite", flags->rewrite,
                 "rewrite its source against its bottleneck; with --auto-tune, also tune it");
  verb->add_option("--top", flags->top, "of several kernels, only the most expensive; 0 = all");
  verb->add_option("--nvcc", flags->capture.nvcc,
                   "options with which nvcc builds the program: \"-I.. -DN=4 -lcublas\"");
  verb->footer("atunner hardware-optimize --source main.cu --auto-tune -- ARGUMENTS");
  flags->tuning.budget = kBudget;
  AddTuning(verb, flags->tuning);
}

}  // namespace atunner::cli
