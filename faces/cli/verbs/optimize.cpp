// `optimize`: tunes an operator by name, or a graph.
#include "atunner/base/files.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/compile/nvcc_program.h"
#include "atunner/importers/model_file.h"
#include "atunner/jobs/runs/tuning.h"
#include "faces/cli/flags/model_source.h"
#include "faces/cli/flags/parse.h"
#include "faces/cli/flags/task_flags.h"
#include "faces/cli/flags/tuning_flags.h"
#include "faces/cli/verbs/rounds_output.h"
#include "faces/cli/verbs/tuning_output.h"

namespace atunner::cli {
namespace {

/// A captured program.
struct CapturedFlags {
  std::string folder;
  std::string kernel;
  size_t top = 3;
  std::string source;
  std::string options;
  bool rewrite = false;

  jobs::OptimizeCaptureRequest Request() const {
    return {folder, kernel, top, source, SplitOptions(options), {}};
  }
};

struct OptimizeFlags {
  TaskFlags task;
  TuningFlags tuning;
  CapturedFlags captured;
  RoundsFlags rounds;
  std::string conv_precision = std::string(Name(ConvPrecision::kFloat32));
  bool first_guess = false;
  bool unchecked = false;

  Thoroughness ThoroughnessOfModel() const {
    if (!first_guess) return Thoroughness::kSearch;
    return unchecked ? Thoroughness::kUnchecked : Thoroughness::kFirstRight;
  }
};

Result<int> OptimizeCapture(const OptimizeFlags& flags, const Context& context) {
  if (!capture::IsCapture(flags.captured.folder))
    return Invalid("this is no capture and no model", flags.captured.folder,
                   "`atunner capture -- PROGRAM` records a program; a model is a .pt2, a .json of "
                   "`atunner.capture`, or a graph (.atg)");
  jobs::OptimizeCaptureRequest request = flags.captured.Request();
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  request.rewrite = flags.captured.rewrite;
  return RunCaptureTuning(context, request);
}

/// True for the file of a user's kernel.
bool IsSource(const std::string& path) {
  const std::string ending = Path(path).extension().string();
  return ending == ".cu" || ending == ".toml";
}

Result<int> OptimizeSource(const OptimizeFlags& flags, const Context& context) {
  if (flags.rounds.rounds == 0)
    return Invalid("a source is optimised in rounds of ideas", flags.captured.folder,
                   "give --rounds 3, or use `atunner hardware-optimize --source`");
  jobs::OptimizeRequest request;
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  agents::RoundsRequest rounds = flags.rounds.Request(request);
  rounds.source = {flags.captured.folder, flags.captured.kernel};
  return RunRounds(context, rounds);
}

/// True if the positional argument is a graph or a model rather than a captured program.
bool IsGraph(const std::string& path) {
  return Path(path).extension() == ".atg" || (!IsFolder(path) && importers::IsModelFile(path));
}

bool IsModel(const std::string& path) {
  return !path.empty() && Path(path).extension() != ".atg" && !IsFolder(path) &&
         importers::IsModelFile(path);
}

Result<int> OptimizeModel(const OptimizeFlags& flags, const Path& model, const Context& context,
                          const jobs::TuningOptions& tuning) {
  if (!flags.task.dims.empty() && !importers::IsOnnxFile(model))
    return Invalid("a model's sizes are those with which it was exported", "--dim",
                   "export it with other example inputs");
  jobs::OptimizeModelRequest request{model, tuning, Accuracy::kDefault, {}, {}};
  request.tuning.thoroughness = flags.ThoroughnessOfModel();
  ATUNNER_TRY(request.sizes, SizesOfAxes(flags.task.dims));
  ATUNNER_TRY(request.accuracy, ParseAccuracyFlag(flags.task.accuracy));
  const auto precision = ParseConvPrecision(flags.conv_precision);
  if (!precision)
    return Invalid("unknown precision '" + flags.conv_precision + "'", "--conv-precision",
                   "use float32 or tf32");
  request.conv_precision = *precision;
  return RunModelTuning(context, request);
}

Result<int> Optimize(OptimizeFlags flags, const Context& context) {
  ATUNNER_TRY(const auto model, ExportIfPython(flags.captured.folder));
  ATUNNER_TRY(const auto graph, ExportIfPython(flags.task.graph));
  TaskFlags task = flags.task;
  if (IsGraph(flags.captured.folder)) {
    task.graph = flags.captured.folder;
  } else if (IsSource(flags.captured.folder)) {
    return OptimizeSource(flags, context);
  } else if (!flags.captured.folder.empty()) {
    return OptimizeCapture(flags, context);
  }
  if (!task.dims.empty() && task.graph.empty())
    return Invalid("--dim is a size of a graph, and there is none", "--dim", "give --graph");
  jobs::OptimizeRequest request;
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  if (IsModel(task.graph) && request.tuning.inspection.Empty() && flags.rounds.rounds == 0)
    return OptimizeModel(flags, task.graph, context, request.tuning);
  if (flags.first_guess)
    return Invalid("only a model has a first guess for each kernel", "--first-guess",
                   "give a model, or --budget 1");
  ATUNNER_TRY(request.task, task.Request());
  if (flags.rounds.rounds > 0) return RunRounds(context, flags.rounds.Request(request));
  return RunTuning(
      context, [&](jobs::Services& services, const jobs::EventSink& events, std::stop_token stop) {
        return jobs::Optimize(request, services, events, std::move(stop));
      });
}

}  // namespace

void AddOptimize(VerbList& verbs) {
  const auto flags = std::make_shared<OptimizeFlags>();
  CLI::App* verb = verbs.Add("optimize", "tune an operator, a graph of operators, or a model",
                             [flags](const Context& c) { return Optimize(*flags, c); });
  CLI::Option* name = AddOperator(verb, flags->task);
  CLI::Option* shapes = verb->add_option("--input-shape", flags->task.shapes,
                                         "shapes, as the operator asks for them")
                            ->needs(name);
  CLI::Option* graph = verb->add_option("--graph", flags->task.graph,
                                        "file.atg: a graph in text form (docs/graph.md); or a "
                                        "PyTorch program, model.pt2, model.json or model.py");
  graph->excludes(name)->excludes(shapes);
  CLI::Option* captured = verb->add_option(
      "capture", flags->captured.folder,
      "app.capture: the kernels of a recorded program; kernel.cu or kernel.toml, with --rounds; or "
      "model.pt2, model.json, file.atg, as with --graph; or model.py[:CLASS], which python3 "
      "exports");
  captured->excludes(name)->excludes(graph);
  verb->add_option("--kernel", flags->captured.kernel,
                   "part of the name of a captured kernel; which kernel of a .cu")
      ->needs(captured);
  verb->add_flag("--rewrite", flags->captured.rewrite,
                 "rewrite the sources of captured kernels against their bottlenecks")
      ->needs(captured);
  verb->add_option("--top", flags->captured.top,
                   "how many captured kernels, most expensive first; 0 = all")
      ->needs(captured);
  verb->add_option("--source", flags->captured.source,
                   "the file that defines the captured kernels, where -lineinfo does not say")
      ->needs(captured);
  verb->add_option("--options", flags->captured.options,
                   "options for that source: \"-I.. -DN=4 -std=c++17\"")
      ->needs(captured);
  verb->add_option("--dim", flags->task.dims,
                   "size of a graph's symbol, B=4096, or several, B=1,64,4096: an artifact for "
                   "each; else the end of its range");
  CLI::Option* first_guess = verb->add_flag(
      "--first-guess", flags->first_guess,
      "a model's kernels without a search: each first configuration, compiled in "
      "parallel and verified");
  verb->add_flag("--unchecked", flags->unchecked,
                 "compile the first guesses and verify nothing, for plans that are checked "
                 "elsewhere: their kernels say so")
      ->needs(first_guess);
  verb->add_option("--conv-precision", flags->conv_precision,
                   "of a model's convolutions in float32: float32, or tf32, which PyTorch allows "
                   "its own convolutions by default");
  AddTuning(verb, flags->tuning);
  AddRounds(verb, flags->rounds);
}

}  // namespace atunner::cli
