#include "atunner/verify/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/model/kernel/tensor_totals.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/verify/budget/stated_tolerance.h"
#include "atunner/verify/budget/trivial_outputs.h"
#include "atunner/verify/launch/poison.h"
#include "atunner/verify/oracle/given_baseline.h"
#include "atunner/verify/oracle/operator_baseline.h"
#include "atunner/verify/oracle/user_reference.h"

namespace atunner {
namespace {

/// Shares of the free memory: the values of kept references; the intermediate values of a baseline.
constexpr uint64_t kCacheShare = 3;
constexpr uint64_t kWorkspaceShare = 4;
/// The same of what the judge may take beside a large task.
constexpr uint64_t kCacheShareOfLarge = 2;
constexpr uint64_t kWorkspaceShareOfLarge = 2;
/// Intermediate values of a small task: this, and half of its own bytes.
constexpr double kLeastWorkspace = 1 << 30;
/// The references of a small task all stay: to compute one again takes as long as everything else
/// in its case. Eight families have up to two bytes each per byte of the task.
constexpr double kBytesOfAll = 16;

uint64_t Least(double bytes, uint64_t most) {
  return bytes < static_cast<double>(most) ? static_cast<uint64_t>(bytes) : most;
}

uint64_t WorkspaceLimit(const OracleContext& context, uint64_t free_bytes) {
  const auto& [device, compiler, kernels, spec, memory] = context;
  const uint64_t most = free_bytes / kWorkspaceShare;
  if (memory.IsLarge(device, spec, spec.dims))
    return std::min(most, memory.Extra(spec, spec.dims) / kWorkspaceShareOfLarge);
  return Least(kLeastWorkspace + TotalsOf(spec, spec.dims).bytes / 2, most);
}

uint64_t CacheLimit(const OracleContext& context, uint64_t free_bytes) {
  const auto& [device, compiler, kernels, spec, memory] = context;
  const uint64_t most = free_bytes / kCacheShare;
  if (memory.IsLarge(device, spec, spec.dims))
    return std::min(most, memory.Extra(spec, spec.dims) / kCacheShareOfLarge);
  const double bytes = TotalsOf(spec, spec.dims).bytes;
  return Least(kLeastWorkspace + (bytes < memory.large_bytes ? kBytesOfAll : 0.5) * bytes, most);
}

/// √(squares / finite elements).
double RmsOf(double squares, const CompareStats& stats) {
  return stats.finite ? std::sqrt(squares / static_cast<double>(stats.finite)) : 0.0;
}

}  // namespace

Result<std::unique_ptr<OracleStore>> OracleStore::Make(Device& device, Compiler& compiler,
                                                       JudgeKernels& kernels,
                                                       const KernelSpec& spec,
                                                       const MemoryLimits& memory) {
  const OracleContext context{device, compiler, kernels, spec, memory};
  ATUNNER_TRY(const uint64_t free_bytes, device.FreeBytes());
  std::unique_ptr<OracleStore> store(new OracleStore(context, CacheLimit(context, free_bytes)));
  if (spec.oracle.kind == Oracle::Kind::kKernel) {
    ATUNNER_TRY(auto user, UserReference::Make(context));
    store->measured_ = std::make_unique<Measured>(
        context, std::make_unique<GivenBaseline>(context, user->given()));
    store->source_ = std::move(user);
  } else {
    ATUNNER_RETURN_IF_ERROR(store->UseOperator(free_bytes));
  }
  store->parts_ = std::make_unique<PartedReferences>(context, *store->source_);
  return store;
}

Status OracleStore::UseOperator(uint64_t free_bytes) {
  const KernelSpec& spec = context_.spec;
  if (spec.oracle.kind == Oracle::Kind::kGraph) {
    if (const auto graph = GraphOf(spec); !graph) return std::unexpected(graph.error());
  }
  const Operator* op = OracleOf(spec);
  if (op == nullptr) return Invalid("unknown operator '" + spec.oracle.operator_name + "'");
  auto baseline = std::make_unique<OperatorBaseline>(context_, *op,
                                                     WorkspaceLimit(context_, free_bytes));
  source_ = std::make_unique<OperatorReference>(context_, *op, *baseline);
  measured_ = std::make_unique<Measured>(context_, std::move(baseline));
  return {};
}

Result<const Reference*> OracleStore::Get(const TaskBuffers& buffers,
                                          const InputInstance& instance) {
  if (const Reference* known = Find(buffers.dims(), instance)) return known;
  if (Reference* dropped = cache_.Find(buffers.dims(), instance)) {
    cache_.Renew(buffers.dims(), instance);  // makes room first
    ATUNNER_RETURN_IF_ERROR(ComputeValues(buffers, *dropped));
    for (Reference::Output& output : dropped->outputs) {
      output.key = SecretBits() | 1;
      ATUNNER_RETURN_IF_ERROR(Mask(output));
    }
    return dropped;
  }
  ATUNNER_TRY(Reference reference, Compute(buffers));
  ATUNNER_RETURN_IF_ERROR(Finish(buffers, instance, reference));
  return cache_.Keep(buffers.dims(), instance, std::move(reference));
}

Result<bool> OracleStore::ReevaluateBudget(const TaskBuffers& buffers,
                                           const InputInstance& instance) {
  Reference* reference = cache_.Find(buffers.dims(), instance);
  if (reference == nullptr) return false;
  return measured_->reevaluation.Run(buffers, instance, *reference);
}

Result<Reference> OracleStore::Compute(const TaskBuffers& buffers) {
  Reference reference;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_output()) continue;
    Reference::Output output;
    output.name = tensor.spec->name;
    output.dtype = tensor.spec->dtype;
    output.stored = source_->StoredType(output.dtype);
    output.elements = static_cast<uint64_t>(tensor.shape.elements);
    reference.bytes += output.elements * sizeof(double);
    reference.outputs.push_back(std::move(output));
  }
  ATUNNER_TRY(const bool in_parts, IsInParts(buffers, reference.bytes));
  if (in_parts) {
    reference.parts = parts_.get();
  } else {
    cache_.MakeRoom(reference.bytes);
    ATUNNER_RETURN_IF_ERROR(ComputeValues(buffers, reference));
  }
  for (Reference::Output& output : reference.outputs)
    output.exact = source_->IsExact(buffers.dims());
  return reference;
}

Result<bool> OracleStore::IsInParts(const TaskBuffers& buffers, uint64_t reference_bytes) {
  const Dims& dims = buffers.dims();
  const auto& [device, compiler, kernels, spec, memory] = context_;
  if (!memory.IsLarge(device, spec, dims)) return false;
  const bool in_place = std::ranges::any_of(buffers.tensors(), [](const auto& tensor) {
    return tensor.spec->role == Role::kInOut;  // a run overwrites what parts are computed from
  });
  if (in_place) return false;
  const uint64_t extra = memory.Extra(spec, dims);
  if (source_->Parts(dims) > 1 && reference_bytes > extra / kCacheShareOfLarge) return true;
  // One that has no parts is not kept either where there is no room for a run of the baseline
  // beside it.
  ATUNNER_TRY(const uint64_t workspaces, measured_->baseline->WorkspaceBytes(dims));
  return reference_bytes + workspaces > extra;
}

Status OracleStore::ComputeValues(const TaskBuffers& buffers, Reference& reference) {
  for (Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(output.masked, context_.device.Allocate(output.elements * sizeof(double)));
  }
  const RangeOf wide = [&](const std::string& name) -> std::optional<MemoryRange> {
    const auto output = std::ranges::find(reference.outputs, name, &Reference::Output::name);
    if (output == reference.outputs.end()) return std::nullopt;
    return MemoryRange{output->masked->address(), output->elements * sizeof(double)};
  };
  return ComputeReference(*source_, buffers, wide);
}

Status OracleStore::Mask(const Reference::Output& output) {
  return context_.kernels.Mask(output.masked->address(), output.elements, output.key);
}

Status OracleStore::Finish(const TaskBuffers& buffers, const InputInstance& instance,
                           Reference& reference) {
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    ATUNNER_TRY(output.self,
                CompareWith(context_, buffers, reference, i, {.dtype = output.stored}));
    const double rms = RmsOf(output.self.squared_reference, output.self);
    output.scale = ElementScale(context_.spec.tolerance, rms);
    output.budget = DefaultBudget(output.dtype, context_.spec.tolerance, rms);
    output.nan_for_infinite = instance.family == InputFamily::kInfinities;
    if (reference.parts != nullptr) continue;
    output.key = SecretBits() | 1;
    ATUNNER_RETURN_IF_ERROR(Mask(output));
  }
  ATUNNER_RETURN_IF_ERROR(measured_->errors.Measure(buffers, instance, reference));
  for (size_t i = 0; i < reference.outputs.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(TestTrivialOutputs(context_, buffers, reference, i));
  ATUNNER_RETURN_IF_ERROR(measured_->decisions.SampleBaseline(buffers, instance, reference));
  if (!StatesTolerance(context_.spec) || instance.family == InputFamily::kNan) return {};
  return CompareTrivialOutputs(context_, buffers, reference);
}

}  // namespace atunner
