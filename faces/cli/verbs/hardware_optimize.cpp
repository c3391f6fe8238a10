// `hardware-optimize`: tunes a kernel in a .cu file as it is, or says what was found in it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/jobs/runs/tuning.h"
#include "faces/cli/flags/tuning_flags.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/tuning_output.h"

namespace atunner::cli {
namespace {

struct SourceFlags {
  std::string source;
  std::string kernel;
  bool auto_tune = false;
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

Result<int> HardwareOptimize(const SourceFlags& flags, const Context& context) {
  jobs::HardwareOptimizeRequest request{flags.source, flags.kernel, flags.auto_tune, {}};
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
  verb->add_flag("--auto-tune", flags->auto_tune,
                 "tune what was found; without it, only say what was found");
  AddTuning(verb, flags->tuning);
}

}  // namespace atunner::cli
