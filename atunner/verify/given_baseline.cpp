#include "atunner/verify/given_baseline.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace atunner {

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

TermCounts GivenBaseline::Terms(const Dims& dims, const std::string& output) const {
  // How many terms a result adds up is not known, but sizes tell: a sum over rows has as many as
  // there are inputs for each result. A product of two matrices of M·K and K·N elements has
  // K = √(M·K · K·N / (M·N)).
  TermCounts terms;
  std::vector<double> inputs;
  double results = 1;
  for (const ArgSpec& arg : context_.spec.args) {
    if (arg.role == Role::kScalar) continue;
    const auto shape = ShapeOf(arg, context_.spec, dims);
    if (!shape) continue;
    const auto elements = static_cast<double>(shape->elements);
    terms.elements = std::max(terms.elements, elements);
    if (arg.name == output) results = elements;
    if (arg.role == Role::kInput) inputs.push_back(elements);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    terms.products = std::max(terms.products, inputs[i] / results);
    for (size_t j = 0; j < i; ++j)
      terms.products = std::max(terms.products, std::sqrt(inputs[i] * inputs[j] / results));
  }
  return terms;
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
