#include "faces/cli/flags/tuning_flags.h"

#include "faces/cli/flags/checks.h"
#include "faces/cli/flags/parse.h"

namespace atunner::cli {
namespace {

Result<jobs::Inspection> InspectionOf(const TuningFlags& flags) {
  jobs::Inspection inspection;
  ATUNNER_TRY(inspection.dump, ParseStages(flags.dump, "--dump"));
  if (flags.stop_after.empty()) return inspection;
  ATUNNER_TRY(const auto last, ParseStages({flags.stop_after}, "--stop-after"));
  inspection.stop_after = last.front();
  return inspection;
}

void AddSearch(CLI::App* verb, TuningFlags& flags) {
  verb->add_option("--target-gpu", flags.target, "a GPU of `atunner devices`, or auto");
  verb->add_option("--strategy", flags.strategy,
                   "search strategy (`auto` unless you know better; a wrong name lists them)");
  verb->add_option("--where", flags.where,
                   "only configurations for which this holds: \"tile_m == 128 and stages > 3\"");
  verb->add_option("--budget", flags.budget, "90s, 5m, 200 (trials), or both: 200,5m")
      ->capture_default_str();
  verb->add_option("--seed", flags.seed, "seed of search and inputs")->check(NotNegative());
  verb->add_option("--objective", flags.objective,
                   "time, memory or energy; of several (time,energy) the front is shown");
  verb->add_option("--devices", flags.devices,
                   "GPUs that judge in parallel: all, or their numbers (0,1)");
}

void AddInspection(CLI::App* verb, TuningFlags& flags) {
  verb->add_option("--dump", flags.dump, "stages to show: " + jobs::StageNames())->delimiter(',');
  verb->add_option("--stop-after", flags.stop_after, "end after this stage, without a search");
}

}  // namespace

Result<jobs::TuningOptions> TuningFlags::Options(const std::string& command) const {
  jobs::TuningOptions options;
  options.target = {target, force_virtual};
  options.strategy = strategy;
  options.where = where;
  ATUNNER_TRY(options.budget, Budget::Parse(budget));
  ATUNNER_TRY(options.objectives, ParseObjectives(objective));
  ATUNNER_TRY(options.devices, ParseDevices(devices));
  options.seed = seed;
  options.out = out;
  options.fresh = fresh;
  options.transfer = !no_transfer;
  options.baselines = !no_baselines;
  options.compile_threads = compile_threads;
  options.compile_timeout_seconds = compile_timeout;
  options.command = command;
  ATUNNER_TRY(options.inspection, InspectionOf(*this));
  return options;
}

void AddCompileTimeout(CLI::App* verb, double& seconds) {
  verb->add_option("--compile-timeout", seconds, "seconds one candidate may compile")
      ->check(Positive());
}

void AddTuning(CLI::App* verb, TuningFlags& flags) {
  AddSearch(verb, flags);
  verb->add_option("--out", flags.out, "folder for the artifact");
  verb->add_flag("--virtual", flags.force_virtual, "predict, even if the GPU is in this machine");
  verb->add_flag("--fresh", flags.fresh,
                 "forget what an earlier run of the same command found, and learn from no other");
  verb->add_flag("--no-transfer", flags.no_transfer,
                 "learn from no run of the same kernel at other sizes or on other GPUs");
  verb->add_flag("--no-baselines", flags.no_baselines,
                 "time neither the plain kernel nor libraries beside the winner");
  verb->add_option("--compile-threads", flags.compile_threads, "0 = all cores");
  AddCompileTimeout(verb, flags.compile_timeout);
  AddInspection(verb, flags);
}

}  // namespace atunner::cli
