// Stages: graphs that none of the other families computes at once, one part after the other: losses
// of rows and their totals, norms over all that every element needs, products behind products. Each
// part is a graph of its own, which another family schedules and which is tuned as a task of its
// own; the whole chooses among what its parts found. Where it is asked for a configuration itself,
// that is one of the part that should take longest, the others begin as they would.
#include <algorithm>
#include <tuple>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/family.h"
#include "atunner/graph/match/attention.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/partition/partition.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/schedule/divided_schedule.h"
#include "atunner/model/schedule/joined_kernel.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/part_task.h"

namespace atunner {
namespace {

using graph::ValidGraph;

const Family* FamilyOf(const KernelSpec& part) {
  for (const Family* family : AllFamilies()) {
    if (family != &kStagesFamily && family->Match(part)) return family;
  }
  return nullptr;
}

/// In bytes of memory: what the part reads and writes, as many more as a launch of two microseconds
/// could move, and an eighth of what each element reads again from caches where nothing is kept.
std::optional<double> CostOf(const ValidGraph& part, const Dims& sizes, double most, bool pairs) {
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
  // Attention is told by computing with it: what need not be asked is not.
  if (!graph::HasOneOfAKind(part, pairs) && !graph::AttentionOf(part)) return std::nullopt;
  const auto made = TaskOfPart(part, sizes, Accuracy::kDefault);
  const Family* family = made ? FamilyOf(made->task) : nullptr;
  if (family == nullptr || (family == &kColumnsFamily && graph::ReducesLittle(part, sizes)))
    return std::nullopt;
  const bool again = family == &kElementsFamily && read > all;
  return kLaunch + all + (again ? (read - all) / 8 : 0);
}

/// `pairs`: a part may have two products of one operand.
std::optional<std::vector<PartTask>> StagesOf(const KernelSpec& spec, const ValidGraph& given,
                                              bool pairs) {
  const ValidGraph graph = graph::FuseMaps(
      graph::WithMatrixProducts(
          graph::WithoutLongSorts(graph::WithoutKnownPlaces(graph::WithoutSingleUpdates(given)))),
      /*through_roundings=*/false);
  const auto parts = graph::Divide(graph, spec.dims, [&](const ValidGraph& part, double most) {
    return CostOf(part, spec.dims, most, pairs);
  });
  if (!parts) return std::nullopt;
  std::vector<PartTask> stages;
  for (const ValidGraph& part : *parts)
    stages.push_back(TaskOfPart(part, spec.dims, AccuracyOf(spec)).value());
  return stages;
}

/// Of any of its open sizes, if all parts can be; else of those that it has. Who asks whether there
/// are any asks for them next.
std::optional<std::vector<PartTask>> StagesOf(const KernelSpec& spec, bool pairs) {
  thread_local std::tuple<Digest, bool, std::optional<std::vector<PartTask>>> last;
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const Digest task = spec.ContentDigest();
  if (std::get<0>(last) == task && std::get<1>(last) == pairs) return std::get<2>(last);
  const auto given = GraphOf(spec);
  if (!given) return std::nullopt;
  auto stages = StagesOf(spec, *given, pairs);
  if (!stages && !spec.dims.empty())
    stages = StagesOf(spec, graph::Specialise(*given, spec.dims).value(), pairs);
  last = {task, pairs, stages};
  return stages;
}

class StagesTemplate : public BoundTemplate, public DividedSchedule {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile, std::vector<PartTask> stages)
      : BoundTemplate(spec, profile), stages_(std::move(stages)) {}

  /// Equal stages are one part, and the one with most work is what the space is of.
  Status BindParts() {
    double longest = -1;
    for (const PartTask& stage : stages_) {
      const auto known = std::ranges::find_if(parts_, [&](const auto& part) {
        return part->spec().oracle.graph == stage.task.oracle.graph;
      });
      part_of_.push_back(static_cast<size_t>(known - parts_.begin()));
      if (known != parts_.end()) continue;
      ATUNNER_TRY(auto part, MakeTemplate(stage.task, profile_));
      // In ns, by memory's and tensor cores' peaks.
      const double flops = FlopCount(stage.task, stage.task.dims).value_or(0);
      const double least = std::max(
          MinimumBytes(stage.task, stage.task.dims).value_or(0) / profile_.dram_gbps,
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

  bool SharesSizes(size_t part) const override {
    return stages_[static_cast<size_t>(std::ranges::find(part_of_, part) - part_of_.begin())]
        .sizes.empty();
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return CheckDimsOf(OfParts(configuration), spec_.dims);
  }
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    return FreeSizesOf(OfParts(configuration), spec_.dims);
  }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    return RenderParts(OfParts(configuration));
  }

  Result<RenderedKernel> RenderParts(
      const std::vector<Configuration>& configurations) const override {
    JoinedKernel all(spec_, profile_.cc_major >= 9);
    for (size_t i = 0; i < stages_.size(); ++i) {
      ATUNNER_TRY(RenderedKernel stage, parts_[part_of_[i]]->Render(configurations[part_of_[i]]));
      ATUNNER_RETURN_IF_ERROR(
          all.Add(std::move(stage), stages_[i].task, stages_[i].names, stages_[i].sizes));
    }
    return std::move(all).Finish();
  }

 private:
  /// Of the longest part, beside the others' defaults.
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

Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec,
                                               const DeviceProfile& profile) {
  auto stages = StagesOf(spec, profile.cc_major == 9);
  if (!stages)
    return Fail(ErrorCode::kUnsupported, "the parts of '" + spec.name + "' take a GPU of Hopper");
  auto bound = std::make_unique<StagesTemplate>(spec, profile, *std::move(stages));
  ATUNNER_RETURN_IF_ERROR(bound->BindParts());
  return bound;
}

}  // namespace

constinit const Family kStagesFamily{
    "stages", [](const KernelSpec& spec) { return StagesOf(spec, true).has_value(); }, Bind};

}  // namespace atunner
