// `optimize`: tunes an operator by name, or a graph.
#include "atunner/jobs/runs/tuning.h"
#include "faces/cli/flags/task_flags.h"
#include "faces/cli/flags/tuning_flags.h"
#include "faces/cli/verbs/tuning_output.h"

namespace atunner::cli {
namespace {

struct OptimizeFlags {
  TaskFlags task;
  TuningFlags tuning;
};

Result<int> Optimize(const OptimizeFlags& flags, const Context& context) {
  jobs::OptimizeRequest request;
  ATUNNER_TRY(request.task, flags.task.Request());
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  return RunTuning(
      context, [&](jobs::Services& services, const jobs::EventSink& events, std::stop_token stop) {
        return jobs::Optimize(request, services, events, std::move(stop));
      });
}

}  // namespace

void AddOptimize(VerbList& verbs) {
  const auto flags = std::make_shared<OptimizeFlags>();
  CLI::App* verb = verbs.Add("optimize", "tune an operator, or a graph of operators",
                             [flags](const Context& c) { return Optimize(*flags, c); });
  CLI::Option* name = AddOperator(verb, flags->task);
  CLI::Option* shapes = verb->add_option("--input-shape", flags->task.shapes,
                                         "shapes, as the operator asks for them")
                            ->needs(name);
  CLI::Option* graph = verb->add_option("--graph", flags->task.graph,
                                        "file.atg: a graph in text form (docs/graph.md)");
  graph->excludes(name)->excludes(shapes);
  verb->add_option("--dim", flags->task.dims,
                   "size of a graph's symbol, B=4096, or several, B=1,64,4096: an artifact for "
                   "each; else the end of its range")
      ->needs(graph);
  AddTuning(verb, flags->tuning);
}

}  // namespace atunner::cli
