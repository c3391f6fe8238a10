#include "atunner/operators/part_task.h"

#include <utility>

#include "atunner/graph/match/attention.h"
#include "atunner/graph/partition/partition.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"

namespace atunner {
namespace {

Result<PartTask> TaskOfAttention(const graph::AttentionForm& form, const Dims& sizes, DType dtype,
                                 Accuracy accuracy) {
  const bool masked = !form.mask.empty();
  if (masked && form.causal) return Invalid("attention that is masked twice");
  if (masked && form.sharing > 1) return Invalid("masked attention of shared heads");
  const Operator* op = FindOperator(masked ? "attention_masked" : "attention_gqa");
  const int64_t batch = form.batch.Bound(sizes).factor();
  OperatorRequest request{{{batch, form.heads, form.queries, form.dim},
                           {batch, form.heads / form.sharing, form.keys, form.dim}},
                          dtype,
                          {{"scale", form.scale}}};
  if (form.causal) request.attributes["causal"] = true;
  ATUNNER_TRY(KernelSpec task, op->Instantiate(request));
  task.attributes[std::string(kScoresOfAnySize)] = true;
  SetAccuracy(task, accuracy);
  PartTask part{.task = Task::Of(std::move(task)),
                .names = {{"q", form.q}, {"k", form.k}, {"v", form.v}, {"y", form.y}}};
  for (const auto& [name, size] : part.task.spec().dims)
    part.sizes[name] = "(" + form.batch.ToString() + ")";
  if (masked) part.names["mask"] = form.mask;
  return part;
}

}  // namespace

Result<PartTask> TaskOfPart(const graph::ValidGraph& part, const Dims& sizes, Accuracy accuracy) {
  const DType dtype = part.node(part.outputs()[0].node).type.dtype;
  if (const auto attention = graph::AttentionOf(part))
    return TaskOfAttention(*attention, sizes, dtype, accuracy);
  const graph::ValidGraph unnamed = graph::WithCanonicalNames(part);
  Dims own = sizes;
  std::erase_if(own, [&](const auto& size) { return !unnamed.symbols().contains(size.first); });
  ATUNNER_TRY(KernelSpec spec, SpecOfGraph(unnamed, own));
  std::map<std::string, std::string> names;
  auto arg = spec.args.begin();
  for (graph::NodeId id : part.inputs()) names[(arg++)->name] = part.node(id).name;
  for (const graph::Output& output : part.outputs()) names[(arg++)->name] = output.name;
  SetAccuracy(spec, accuracy);
  return PartTask{.task = Task::Of(std::move(spec)), .names = std::move(names)};
}

}  // namespace atunner
