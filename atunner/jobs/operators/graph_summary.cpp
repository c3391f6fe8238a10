#include "atunner/jobs/operators/graph_summary.h"

#include <algorithm>
#include <memory>

#include "atunner/codegen/template/family.h"
#include "atunner/graph/graph.h"
#include "atunner/model/schedule/partitioned_schedule.h"

namespace atunner::jobs {
namespace {

size_t NodesOf(const Task& task) {
  const graph::ValidGraph* graph = task.graph();
  return graph == nullptr ? 0 : graph->nodes().size() - graph->inputs().size();
}

Result<size_t> KernelsOf(const ScheduleTemplate& schedule) {
  ATUNNER_TRY(const RenderedKernel rendered, schedule.Render(schedule.Default()));
  return rendered.plan.steps.size();
}

Result<PartSummary> SummaryOfPart(const ScheduleTemplate& schedule) {
  const KernelSpec& spec = schedule.spec();
  const Task task = Task::Of(spec);
  const Family* family = FamilyOf(task, /*partitions=*/false);
  PartSummary part;
  part.family = family == nullptr ? "plain kernels" : std::string(family->name);
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kOutput)
      part.outputs.push_back(arg.name);
    else
      part.inputs.push_back(arg.name);
  }
  part.nodes = NodesOf(task);
  part.bytes = MinimumBytes(spec, spec.dims).value_or(0);
  part.flops = FlopCount(spec, spec.dims).value_or(0);
  ATUNNER_TRY(part.kernels, KernelsOf(schedule));
  return part;
}

}  // namespace

Result<GraphSummary> SummaryOf(const Task& task, const DeviceProfile& profile) {
  ATUNNER_TRY(const std::unique_ptr<ScheduleTemplate> schedule, MakeTemplate(task, profile));
  GraphSummary summary;
  summary.nodes = NodesOf(task);
  summary.bytes = MinimumBytes(task.spec(), task.spec().dims).value_or(0);
  summary.flops = FlopCount(task.spec(), task.spec().dims).value_or(0);
  ATUNNER_TRY(summary.kernels, KernelsOf(*schedule));
  std::vector<const ScheduleTemplate*> parts = {schedule.get()};
  if (const auto* divided = dynamic_cast<const PartitionedSchedule*>(schedule.get()))
    parts = divided->Parts();
  for (const ScheduleTemplate* part : parts) {
    ATUNNER_TRY(PartSummary made, SummaryOfPart(*part));
    summary.parts.push_back(std::move(made));
  }
  return summary;
}

}  // namespace atunner::jobs
