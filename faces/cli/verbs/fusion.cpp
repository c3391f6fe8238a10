// `fusion`: which nodes of a model share a kernel, and why others do not.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/fusion/fusion_plan.h"
#include "atunner/fusion/plan_text.h"
#include "atunner/fusion/training_text.h"
#include "atunner/importers/python_step.h"
#include "atunner/importers/user_python.h"
#include "faces/cli/flags/model_source.h"
#include "faces/cli/flags/task_flags.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/training_plan.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

struct FusionFlags {
  std::string file;
  std::string graph;
  std::string training_graph;
  std::string mode;
  std::string target = "H100";
  std::string dot;
  std::vector<std::string> dims;
  bool exact_casts = false;
};

/// The file that one of the three flags names.
Result<std::string> FileOf(const FusionFlags& flags) {
  std::string file;
  for (const std::string& given : {flags.file, flags.graph, flags.training_graph}) {
    if (given.empty()) continue;
    if (!file.empty())
      return Invalid("one graph at a time", file + ", " + given,
                     "give a file, --graph or --training-graph");
    file = given;
  }
  if (file.empty())
    return Invalid("no graph is given", "", "atunner fusion model.pt2, or --training-graph FILE");
  return file;
}

/// Prints a plan, and draws it if the user wants that.
template <class Plan>
Result<int> Show(const Plan& plan, const FusionFlags& flags, const Context& context) {
  if (!flags.dot.empty()) ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.dot, fusion::DotOf(plan)));
  if (context.common.json)
    PrintJson(fusion::JsonOf(plan));
  else
    fmt::print("{}", Printable(fusion::TextOf(plan, context.common.explain)));
  return 0;
}

Result<int> Fusion(const FusionFlags& flags, const Context& context) {
  ATUNNER_TRY(const std::string file, FileOf(flags));
  ATUNNER_TRY(const Dims sizes, SizesOfAxes(flags.dims));
  std::optional<importers::WrittenSteps> written;
  if (importers::IsPythonFile(file)) {
    ATUNNER_TRY(importers::WrittenSteps made, importers::WriteSteps(file, {}));
    written.emplace(std::move(made));
  }
  ATUNNER_TRY(const ModelSource source, ReadModelSource(written ? written->files[0] : file, sizes));
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(flags.target));
  const auto roundings = flags.exact_casts ? fusion::Roundings::kAll
                                           : fusion::Roundings::kWhereExact;
  const bool asked = flags.mode == "training" || written || !flags.training_graph.empty();
  if (flags.mode != "inference" && asked) {
    ATUNNER_TRY(const fusion::TrainingPlan plan, PlanOfStep(source, profile, roundings));
    return Show(plan, flags, context);
  }
  const fusion::PlanRequest request{.roundings = roundings, .inputs = InputFacts(source)};
  ATUNNER_TRY(const fusion::FusionPlan plan, fusion::PlanFusion(source.graph, request, profile));
  return Show(plan, flags, context);
}

}  // namespace

void AddFusion(VerbList& verbs) {
  const auto flags = std::make_shared<FusionFlags>();
  CLI::App* verb = verbs.Add("fusion",
                             "which nodes of a model share a kernel, and why others do not",
                             [flags](const Context& c) { return Fusion(*flags, c); });
  verb->footer("--explain: the nodes of each group, and the reason of each boundary");
  verb->add_option("file", flags->file,
                   "model.pt2 or model.json: a PyTorch program; file.atg: a graph in text form");
  verb->add_option("--graph", flags->graph, "the same");
  verb->add_option("--training-graph", flags->training_graph,
                   "a training step that atunner.capture_step wrote, or train.py:make_step, a "
                   "function that returns model, loss, optimizer, batch");
  verb->add_option("--mode", flags->mode,
                   "training: also dependencies, memory and training fusions; default with "
                   "--training-graph. inference: the graph alone")
      ->check(CLI::IsMember({"training", "inference"}));
  verb->add_option("--dim", flags->dims, "size of an open axis of an ONNX model, batch=8");
  verb->add_option("--target-gpu", flags->target, "the GPU whose kernels are counted");
  verb->add_option("--dot", flags->dot, "write the plan in Graphviz's language to this file");
  verb->add_flag("--eager-exact-casts", flags->exact_casts,
                 "round every 16-bit value as PyTorch does operator by operator; without it only "
                 "where a comparison, an index or an integer depends on the value");
}

}  // namespace atunner::cli
