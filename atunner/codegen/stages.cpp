#include "atunner/codegen/stages.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "atunner/codegen/conv/conv_form.h"
#include "atunner/graph/match/attention.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/match/sole_product.h"
#include "atunner/graph/partition/partition.h"
#include "atunner/graph/rewrite/maps_before_reshapes.h"
#include "atunner/graph/rewrite/maps_before_transposes.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewrite/transposes_into_products.h"
#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

using graph::ValidGraph;
using Refusal = StageCost::Refusal;

/// The cost of one node that no family computes, on a plain kernel: so much that any family is
/// better. Other subgraphs are made of such nodes.
StageCost CostOfPlain(const ValidGraph& part, double bytes, double most) {
  constexpr double kTimesSlower = 1e3;
  constexpr double kLeast = 1e10;
  const size_t nodes = part.nodes().size() - part.inputs().size();
  const double cost = kLeast + kTimesSlower * bytes;
  if (nodes != 1 || cost >= most) return {.refusal = Refusal::kNoFamily};
  return {.cost = cost};
}

/// What a value is without changes of its shape.
graph::NodeId Reshaped(const ValidGraph& part, graph::NodeId id) {
  while (part.node(id).As<graph::Reshape>()) id = part.node(id).operands[0];
  return id;
}

/// True if the output is another output of the part in an order in which neighbours in rows are
/// none.
bool IsTransposedOutput(const ValidGraph& part, graph::NodeId output) {
  const graph::Node& node = part.node(Reshaped(part, output));
  const auto* transpose = node.As<graph::Transpose>();
  if (transpose == nullptr ||
      transpose->order.back() + 1 == static_cast<int64_t>(transpose->order.size()))
    return false;
  const graph::NodeId source = Reshaped(part, node.operands[0]);
  return std::ranges::any_of(part.outputs(), [&](const graph::Output& other) {
    return Reshaped(part, other.node) == source;
  });
}

/// The task of a part that equals another one but for the names of its tensors.
PartTask Renamed(const PartTask& known, const ValidGraph& first, const ValidGraph& part) {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < part.inputs().size(); ++i)
    names[first.node(first.inputs()[i]).name] = part.node(part.inputs()[i]).name;
  for (size_t i = 0; i < part.outputs().size(); ++i)
    names[first.outputs()[i].name] = part.outputs()[i].name;
  PartTask same = known;
  for (auto& [own, name] : same.names) name = names.at(name);
  return same;
}

void AddStages(Stages& all, const std::vector<graph::Part>& parts, const KernelSpec& spec) {
  std::map<Digest, size_t> known;
  for (const graph::Part& part : parts) {
    const Digest digest = graph::WithCanonicalNames(part.graph).ContentDigest();
    const auto [at, fresh] = known.try_emplace(digest, all.stages.size());
    const Stage* like = fresh ? nullptr : &all.stages[at->second];
    PartTask task = like == nullptr ? TaskOfPart(part.graph, spec.dims, AccuracyOf(spec)).value()
                                    : Renamed(like->task, like->part, part.graph);
    AdoptConvPrecision(ConvPrecisionOf(spec), task.task);
    all.stages.push_back({part.graph, std::move(task), part.nodes, at->second});
  }
}

std::optional<Stages> StagesOf(const KernelSpec& spec, const ValidGraph& given,
                               const StageRules& rules) {
  Stages all{PreparedForStages(given), {}};
  const auto parts = graph::Partition(
      all.graph, spec.dims, [&](const ValidGraph& part, double most) -> std::optional<double> {
        const StageCost cost = CostOfStage(part, spec.dims, rules, most);
        return cost.refusal == Refusal::kNone ? std::optional(cost.cost) : std::nullopt;
      });
  if (!parts) return std::nullopt;
  AddStages(all, *parts, spec);
  // A single node for plain kernels is no partition: MakeTemplate would ask for it for ever.
  if (all.stages.size() == 1 && FamilyOf(all.stages[0].task.task, /*partitions=*/false) == nullptr)
    return std::nullopt;
  return all;
}

}  // namespace

StageCost CostOfStage(const ValidGraph& part, const Dims& sizes, const StageRules& rules,
                      double most) {
  constexpr double kLaunch = 8e6;
  const auto bytes = [&](graph::NodeId id) {
    const auto& [dtype, shape] = part.node(id).type;
    return static_cast<double>(graph::ElementCount(shape).Bound(sizes).factor()) *
           static_cast<double>(SizeOf(dtype));
  };
  double all = 0, read = 0;
  for (graph::NodeId id : part.inputs()) all += bytes(id);
  for (const graph::Output& output : part.outputs()) {
    all += bytes(output.node);
    read += graph::InlineWorkOf(part, output.node).loads * bytes(output.node);
  }
  if (kLaunch + all >= most) return {.refusal = Refusal::kTooMuch};
  // AttentionOf evaluates the graph, which is slow: it is asked last.
  if (!graph::HasOneAnchor(part, rules.pairs) && !graph::AttentionOf(part))
    return {.refusal = Refusal::kAnchors};
  if (!graph::MayEndBehindProduct(part)) return {.refusal = Refusal::kNoFamily};
  const auto made = TaskOfPart(part, sizes, Accuracy::kDefault);
  const Family* family = made ? FamilyOf(made->task, /*partitions=*/false) : nullptr;
  if (family == nullptr)
    return rules.plain ? CostOfPlain(part, all, most) : StageCost{.refusal = Refusal::kNoFamily};
  if (family->only_large_reductions && graph::HasSmallReduction(part, sizes))
    return {.refusal = Refusal::kSmallReduction};
  if (!family->rereads_operands) return {.family = family, .cost = kLaunch + all};
  // Such a family reads what a transposed output needs element by element; the family of
  // transpositions moves tiles of the other output instead. On an H200 17 outputs took 1026 us of a
  // step, and 206 us so.
  constexpr double kTimesSlowerApart = 4;
  double apart = 0;
  for (const graph::Output& output : part.outputs()) {
    if (IsTransposedOutput(part, output.node)) apart += kTimesSlowerApart * bytes(output.node);
  }
  return {.family = family, .cost = kLaunch + all + apart + std::max(read - all, 0.0) / 8};
}

ValidGraph PreparedForStages(const ValidGraph& given) {
  const ValidGraph tables = graph::WithConstantIndexTables(
      graph::WithoutSingleElementScatters(graph::Simplify(given)));
  const ValidGraph products = graph::WithCanonicalMatmuls(
      graph::WithTransposesInProducts(graph::WithSplitSorts(tables)));
  const ValidGraph canonical = graph::FuseMaps(products, /*through_roundings=*/false);
  const ValidGraph moved = graph::WithMapsBeforeReshapes(
      graph::WithMapsBeforeTransposes(canonical));
  return graph::FuseMaps(moved, /*through_roundings=*/false);
}

std::optional<Stages> StagesOf(const Task& task, bool pairs) {
  if (task.graph() == nullptr) return std::nullopt;
  const KernelSpec& spec = task.spec();
  if (auto stages = StagesOf(spec, *task.graph(), {.pairs = pairs})) return stages;
  const ValidGraph own = graph::Specialise(*task.graph(), spec.dims).value();
  if (!spec.dims.empty()) {
    if (auto stages = StagesOf(spec, own, {.pairs = pairs})) return stages;
  }
  return StagesOf(spec, own, {.pairs = pairs, .plain = true});
}

void AdoptConvPrecision(ConvPrecision precision, Task& part) {
  KernelSpec spec = part.spec();
  if (precision != ConvPrecision::kTf32 || spec.compute_dtype != DType::kFloat32 ||
      AccuracyOf(spec) != Accuracy::kDefault)
    return;
  const auto conv = ReadConv(part);
  if (!conv || !IsInTf32ByCudnn(*conv)) return;
  SetAccuracy(spec, Accuracy::kFast);
  part = Task::Of(std::move(spec));
}

}  // namespace atunner
