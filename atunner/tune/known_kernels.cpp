#include "atunner/tune/known_kernels.h"

#include <fmt/format.h>

namespace atunner {
namespace {

std::string Text(const Dim3& dim) { return fmt::format("{},{},{}", dim.x, dim.y, dim.z); }

std::string Text(const ConcreteArg& arg) {
  std::string text = fmt::format("{} {}", static_cast<int>(arg.kind), arg.name);
  for (uint32_t i = 0; i < arg.scalar.size; ++i)
    text += fmt::format(" {:02x}", static_cast<int>(arg.scalar.bytes[i]));
  if (IsMap(arg.kind)) text += " " + ToString(arg.map);
  return text;
}

/// Appends all launch parameters of the plan.
void Append(const ConcretePlan& plan, std::vector<std::string>& fields) {
  for (const ConcreteWorkspace& workspace : plan.workspaces)
    fields.push_back(fmt::format("workspace {} {}", workspace.name, workspace.bytes));
  for (const SymbolCopy& copy : plan.symbols)
    fields.push_back("symbol " + copy.symbol + " " + copy.tensor);
  for (const ConcreteStep& step : plan.steps) {
    fields.push_back(fmt::format("{} {} {} {} {} {} {}", step.entry, Text(step.grid),
                                 Text(step.block), Text(step.cluster), step.shared_bytes,
                                 step.cooperative, step.programmatic));
    for (const ConcreteArg& arg : step.args) fields.push_back(Text(arg));
  }
}

}  // namespace

int64_t KnownKernels::FirstOf(const CandidateKernel& candidate, const KernelSpec& spec,
                              int64_t number) {
  std::vector<std::string> fields = {candidate.module.binary.ToHex()};
  std::vector<Dims> sizes = candidate.check_dims;
  sizes.push_back(spec.dims);
  for (const Dims& dims : sizes) {
    const auto plan = Resolve(candidate.plan, dims, spec.attributes);
    if (!plan) return number;  // the judge reports what is wrong with the plan
    fields.push_back(ToString(dims));
    Append(*plan, fields);
  }
  return first_.emplace(DigestOf(fields), number).first->second;
}

}  // namespace atunner
