#include "atunner/verify/oracle/given_baseline.h"

#include <algorithm>
#include <string_view>

#include "atunner/model/kernel/tensor_totals.h"
#include "atunner/verify/oracle/fan_in.h"

namespace atunner {
namespace {

/// Fewer terms are hardly a sum: a stencil, or a function of two inputs.
constexpr double kFewestTerms = 8;

}  // namespace

Status GivenBaseline::Run(const TaskBuffers& buffers, const RangeOf& elsewhere) {
  Device& device = context_.device;
  const AddressOf address = [&](const std::string& name) -> std::optional<DeviceAddress> {
    const auto range = elsewhere(name);
    return range ? std::optional(range->address) : std::nullopt;
  };
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    const auto moved = elsewhere(tensor.spec->name);
    if (moved && tensor.spec->role == Role::kInOut)
      ATUNNER_RETURN_IF_ERROR(device.CopyWithin(moved->address, tensor.address, moved->bytes));
  }
  ATUNNER_TRY(const BoundPlan plan, BindPlan(device, given_.plan, context_.spec, buffers, address));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, *given_.module, plan));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(device, *given_.module, plan,
                      {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
  if (!outcome.completed())
    return Fail(ErrorCode::kInternal, "the kernel as given failed: " + outcome.message);
  return {};
}

Result<uint64_t> GivenBaseline::WorkspaceBytes(const Dims& dims) {
  ATUNNER_TRY(const ConcretePlan plan, Resolve(given_.plan, dims, context_.spec.attributes));
  uint64_t bytes = 0;
  for (const ConcreteWorkspace& workspace : plan.workspaces) bytes += workspace.bytes;
  return bytes;
}

Status GivenBaseline::Prepare(const TaskBuffers& buffers) {
  if (fan_in_.contains(buffers.dims())) return {};
  const RangeOf in_place = [](const std::string&) { return std::nullopt; };
  ATUNNER_TRY(fan_in_[buffers.dims()],
              MeasureFanIn(context_, buffers, [&] { return Run(buffers, in_place); }));
  return {};
}

TermCounts GivenBaseline::Terms(const Dims& dims, const std::string& output) const {
  TermCounts terms;
  terms.elements = TotalsOf(context_.spec, dims).largest;
  const auto measured = fan_in_.find(dims);
  if (measured == fan_in_.end()) return terms;
  const auto found = measured->second.find(output);
  if (found != measured->second.end()) terms.products = found->second;
  return terms;
}

bool GivenBaseline::AddsInUnknownOrder(const Dims& dims) const {
  return std::ranges::any_of(context_.spec.args, [&](const ArgSpec& arg) {
    return arg.role != Role::kScalar && arg.role != Role::kInput &&
           Terms(dims, arg.name).products >= kFewestTerms;
  });
}

bool GivenBaseline::MayNudge(const Dims& dims, InputFamily family) const {
  using enum InputFamily;
  const bool amplifies = family == kCancelling || family == kLargeLogits || family == kNeedle ||
                         family == kHeavyTail;
  return amplifies || AddsInUnknownOrder(dims);
}

bool AddsFloatsByAtomics(std::string_view ptx) {
  for (size_t at = 0; at < ptx.size();) {
    const size_t end = std::min(ptx.find(';', at), ptx.size());
    const std::string_view line = ptx.substr(at, end - at);
    const size_t atom = std::min(line.find("atom."), line.find("red."));
    if (atom != std::string_view::npos) {
      const std::string_view name = line.substr(atom, line.find_first_of(" \t", atom) - atom);
      if (name.contains(".add") && (name.contains(".f16") || name.contains(".bf16") ||
                                    name.contains(".f32") || name.contains(".f64")))
        return true;
    }
    at = end + 1;
  }
  return false;
}

}  // namespace atunner
