// Stages: graphs that no other family computes at once are partitioned into subgraphs, which run
// one after the other: losses of rows and their totals, norms over all elements that every element
// needs, products behind products. Each subgraph is scheduled by another family and tuned as a task
// of its own; the whole chooses among the results. A configuration of the whole is one of the
// subgraph that should take longest; the others use their defaults.
#include <algorithm>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/family.h"
#include "atunner/graph/match/attention.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/partition/partition.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/schedule/joined_kernel.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/operators/part_task.h"

namespace atunner {
namespace {

using graph::ValidGraph;

/// The cost of one node that no family computes, on a plain kernel: so much that any family is
/// better. Other subgraphs are made of such nodes.
std::optional<double> CostOfPlain(const ValidGraph& part, double bytes, double most) {
  constexpr double kTimesSlower = 1e3;
  constexpr double kLeast = 1e10;
  const size_t nodes = part.nodes().size() - part.inputs().size();
  const double cost = kLeast + kTimesSlower * bytes;
  if (nodes != 1 || cost >= most) return std::nullopt;
  return cost;
}

/// The cost of a subgraph, as bytes of DRAM traffic: the bytes that it reads and writes, the bytes
/// that could move during a launch (two microseconds), and an eighth of the bytes that elements
/// read again from caches. nullopt if it is not below `most`, or no family computes the subgraph.
std::optional<double> CostOf(const ValidGraph& part, const Dims& sizes, double most, bool pairs,
                             bool plain) {
  constexpr double kLaunch = 8e6;
  const auto bytes = [&](graph::NodeId id) {
    const auto& [dtype, shape] = part.node(id).type;
    return Real(graph::ElementCount(shape).Bound(sizes).factor() * SizeOf(dtype));
  };
  double all = 0, read = 0;
  for (graph::NodeId id : part.inputs()) all += bytes(id);
  for (const graph::Output& output : part.outputs()) {
    all += bytes(output.node);
    read += graph::InlineWorkOf(part, output.node).loads * bytes(output.node);
  }
  if (kLaunch + all >= most) return std::nullopt;
  // AttentionOf evaluates the graph, which is slow: it is asked last.
  if (!graph::HasOneAnchor(part, pairs) && !graph::AttentionOf(part)) return std::nullopt;
  const auto made = TaskOfPart(part, sizes, Accuracy::kDefault);
  const Family* family = made ? FamilyOf(made->task, /*partitions=*/false) : nullptr;
  if (family == nullptr) return plain ? CostOfPlain(part, all, most) : std::nullopt;
  if (family->only_large_reductions && graph::HasSmallReduction(part, sizes)) return std::nullopt;
  const bool again = family->rereads_operands && read > all;
  return kLaunch + all + (again ? (read - all) / 8 : 0);
}

/// The tasks of the partition's subgraphs. `pairs`: a subgraph may have two products of one
/// operand. `plain`: nodes that no family computes become parts for plain kernels.
std::optional<std::vector<PartTask>> StagesOf(const KernelSpec& spec, const ValidGraph& given,
                                              bool pairs, bool plain) {
  const ValidGraph graph = graph::FuseMaps(
      graph::WithCanonicalMatmuls(graph::WithSplitSorts(
          graph::WithConstantIndexTables(graph::WithoutSingleElementScatters(given)))),
      /*through_roundings=*/false);
  const auto parts = graph::Partition(graph, spec.dims, [&](const ValidGraph& part, double most) {
    return CostOf(part, spec.dims, most, pairs, plain);
  });
  if (!parts) return std::nullopt;
  std::vector<PartTask> stages;
  for (const ValidGraph& part : *parts)
    stages.push_back(TaskOfPart(part, spec.dims, AccuracyOf(spec)).value());
  // A single node for plain kernels is no partition: MakeTemplate would ask for it for ever.
  if (stages.size() == 1 && FamilyOf(stages[0].task, /*partitions=*/false) == nullptr)
    return std::nullopt;
  return stages;
}

/// Keeps the sizes of the task open if every subgraph can be computed so; otherwise the subgraphs
/// are those of the graph at the task's own sizes, and only then some are left to plain kernels.
std::optional<std::vector<PartTask>> StagesOf(const Task& task, bool pairs) {
  if (task.graph() == nullptr) return std::nullopt;
  const KernelSpec& spec = task.spec();
  if (auto stages = StagesOf(spec, *task.graph(), pairs, /*plain=*/false)) return stages;
  const ValidGraph own = graph::Specialise(*task.graph(), spec.dims).value();
  if (!spec.dims.empty()) {
    if (auto stages = StagesOf(spec, own, pairs, /*plain=*/false)) return stages;
  }
  return StagesOf(spec, own, pairs, /*plain=*/true);
}

class StagesTemplate : public BoundTemplate, public PartitionedSchedule {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile, std::vector<PartTask> stages)
      : BoundTemplate(spec, profile), stages_(std::move(stages)) {}

  /// Equal stages are one part. The space is that of the part with most work.
  Status BindParts() {
    double longest = -1;
    for (const PartTask& stage : stages_) {
      const auto known = std::ranges::find_if(parts_, [&](const auto& part) {
        return part->spec().oracle.graph == stage.task.spec().oracle.graph;
      });
      part_of_.push_back(static_cast<size_t>(known - parts_.begin()));
      if (known != parts_.end()) continue;
      ATUNNER_TRY(auto part, MakeTemplate(stage.task, profile_));
      // In ns, by memory's and tensor cores' peaks.
      const KernelSpec& task = stage.task.spec();
      const double flops = FlopCount(task, task.dims).value_or(0);
      const double least = std::max(
          MinimumBytes(task, task.dims).value_or(0) / profile_.dram_gbps,
          flops / (2 * profile_.tensor_fp16_fma_per_clk * profile_.sms * profile_.clock_ghz));
      if (least > longest) longest = least, main_ = parts_.size();
      parts_.push_back(std::move(part));
    }
    space_ = parts_[main_]->space();
    return {};
  }

  Configuration Default() const override { return parts_[main_]->Default(); }
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    return parts_[main_]->Cost(configuration, profile);
  }
  std::vector<const ScheduleTemplate*> Parts() const override {
    std::vector<const ScheduleTemplate*> parts;
    for (const auto& part : parts_) parts.push_back(part.get());
    return parts;
  }

  std::vector<PartStage> Stages() const override {
    std::vector<PartStage> stages;
    for (size_t i = 0; i < stages_.size(); ++i) stages.push_back({part_of_[i], stages_[i].names});
    return stages;
  }

  bool SharesSizes(size_t part) const override {
    return stages_[static_cast<size_t>(std::ranges::find(part_of_, part) - part_of_.begin())]
        .sizes.empty();
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return CheckDimsOf(OfParts(configuration), spec_.dims);
  }
  ValidSizes FreeSizes(const Configuration& configuration) const override {
    return FreeSizesOf(OfParts(configuration), spec_.dims);
  }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    return RenderParts(OfParts(configuration));
  }

  Result<RenderedKernel> RenderParts(
      const std::vector<Configuration>& configurations) const override {
    JoinedKernel all(spec_, CapabilitiesOf(profile_).programmatic_launch);
    for (size_t i = 0; i < stages_.size(); ++i) {
      ATUNNER_TRY(RenderedKernel stage, parts_[part_of_[i]]->Render(configurations[part_of_[i]]));
      ATUNNER_RETURN_IF_ERROR(
          all.Add(std::move(stage), stages_[i].task.spec(), stages_[i].names, stages_[i].sizes));
    }
    return std::move(all).Finish();
  }

 private:
  /// The configuration of the longest part, with the defaults of the others.
  std::vector<Configuration> OfParts(const Configuration& configuration) const {
    std::vector<Configuration> all;
    for (const auto& part : parts_) all.push_back(part->Default());
    all[main_] = configuration;
    return all;
  }

  std::vector<PartTask> stages_;
  std::vector<std::unique_ptr<ScheduleTemplate>> parts_;
  std::vector<size_t> part_of_;  ///< each stage's
  size_t main_ = 0;
};

BoundSchedule Bind(const KernelSpec& spec, std::vector<PartTask> stages,
                   const DeviceProfile& profile) {
  auto bound = std::make_unique<StagesTemplate>(spec, profile, std::move(stages));
  ATUNNER_RETURN_IF_ERROR(bound->BindParts());
  return bound;
}

/// Kernels of two products at once take Hopper: for other devices the graph is partitioned again.
BoundSchedule BindWithoutPairs(const Task& task, const DeviceProfile& profile) {
  auto stages = StagesOf(task, /*pairs=*/false);
  if (stages) return Bind(task.spec(), *std::move(stages), profile);
  return Fail(ErrorCode::kUnsupported,
              "the parts of '" + task.spec().name + "' take a GPU of Hopper");
}

Binding Try(const Task& task) {
  auto stages = StagesOf(task, /*pairs=*/true);
  if (!stages) return {};
  return {.bind = [task, stages = *std::move(stages)](const DeviceProfile& profile) {
    return CapabilitiesOf(profile).wgmma ? Bind(task.spec(), stages, profile)
                                         : BindWithoutPairs(task, profile);
  }};
}

}  // namespace

constinit const Family kStagesFamily{.name = "stages", .Try = Try, .partitions = true};

}  // namespace atunner
