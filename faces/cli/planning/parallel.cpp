// `parallel plan`: how a training step is spread over GPUs.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/jobs/system/parallel_request.h"
#include "atunner/planning/parallel/plan_text.h"
#include "faces/cli/output/render.h"
#include "faces/cli/planning/planning_verbs.h"

namespace atunner::cli {
namespace {

struct ParallelFlags {
  std::string what;
  std::string out;
  jobs::ParallelModelRequest request;
  std::string objective = "throughput";
  bool all = false;
};

Result<int> PlanModel(const ParallelFlags& flags, const Context& context) {
  jobs::ParallelModelRequest request = flags.request;
  request.objective = flags.objective == "memory" ? planning::PlanObjective::kMemory
                                                  : planning::PlanObjective::kTime;
  ATUNNER_TRY(planning::ParallelRequest planned, jobs::ReadParallelRequest(request));
  if (flags.all) planned.alternatives = std::numeric_limits<size_t>::max();
  ATUNNER_TRY(const planning::ParallelPlans plans, planning::PlanParallel(planned));
  const Json json = planning::ToJson(planned, plans);
  if (!flags.out.empty())
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.out, DumpJson(json, 2) + "\n"));
  if (context.common.json)
    PrintJson(json);
  else
    fmt::print("{}", Printable(planning::TextOf(planned, plans, context.common.explain)));
  return 0;
}

}  // namespace

void AddParallel(VerbList& verbs) {
  const auto flags = std::make_shared<ParallelFlags>();
  CLI::App* verb = verbs.Add("parallel", "plan: how a training step is spread over GPUs",
                             [flags](const Context& c) { return PlanModel(*flags, c); });
  verb->footer(
      "atunner parallel plan model.pt2 --gpus 8xH200 --batch 512 --explain\n"
      "atunner parallel plan step.pt2 --gpus 2xH100 --comm tuned/table.json --out plan.json\n"
      "All times are predicted.");
  verb->add_option("what", flags->what, "plan")->required()->check(CLI::IsMember({"plan"}));
  verb->add_option("model", flags->request.model,
                   "model.pt2 or model.json: a PyTorch model or a captured training step")
      ->required();
  verb->add_option("--gpus", flags->request.gpus, "number and kind of GPUs of one node: 8xH200");
  verb->add_option("--batch", flags->request.batch,
                   "samples of one step on all GPUs; by default the model's own times the GPUs");
  verb->add_option("--capacity-gb", flags->request.capacity_gb,
                   "memory of one GPU that the plan may fill; by default 92 % of the GPU's");
  verb->add_option("--optimizer-bytes", flags->request.optimizer_bytes,
                   "of states for one parameter: 8 for Adam, 4 for momentum, 0 for plain SGD");
  verb->add_option("--comm", flags->request.comm_table,
                   "table.json of `comm tune`: measured all-reduces in place of typical ones");
  verb->add_option("--measured", flags->request.measured,
                   "measured passes of one GPU, as bench/parallel_plans.py writes them");
  verb->add_flag("--all", flags->all, "show all strategies that fit, not the next five");
  verb->add_option("--objective", flags->objective, "throughput or memory")
      ->check(CLI::IsMember({"throughput", "memory"}));
  verb->add_option("--out", flags->out, "write the plan as JSON");
}

}  // namespace atunner::cli
