#include "atunner/verify/budget/stated_tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

constexpr const char* kZeros = "zeros";
constexpr const char* kConstant = "a constant";

/// Compares `data` as if a candidate had returned it, once within the task's tolerance and once
/// within the budget that there would be without.
Status CompareOne(const OracleContext& context, const TaskBuffers& buffers, Reference& reference,
                  size_t number, std::string what, DeviceAddress data, DType dtype) {
  Reference::Output& output = reference.outputs[number];
  const CompareRequest request{
      .data = data, .dtype = dtype, .scale = output.scale, .element_bound = output.budget.element};
  ATUNNER_TRY(const CompareStats stats, CompareWith(context, buffers, reference, number, request));
  const double rms = output.self.finite ? std::sqrt(output.self.squared_reference /
                                                    static_cast<double>(output.self.finite))
                                        : 0.0;
  if (stats.RelativeNorm() <= DefaultBudget(output.dtype, {}, rms).norm) return {};
  const bool within = stats.RelativeNorm() <= output.budget.norm &&
                      stats.worst <= output.budget.element;
  output.trivial.push_back({std::move(what), within});
  return {};
}

Status CompareConstant(const OracleContext& context, const TaskBuffers& buffers,
                       Reference& reference, size_t number, std::string what, double value) {
  const Reference::Output& output = reference.outputs[number];
  const TaskBuffers::Tensor& tensor = *buffers.Find(output.name);
  ArgSpec constant = *tensor.spec;
  constant.fill = {};
  constant.fill.kind = Fill::Kind::kConstant;
  constant.fill.low = value;
  ATUNNER_RETURN_IF_ERROR(
      context.kernels.FillTensor(tensor.address, constant, output.elements, tensor.position, {}));
  return CompareOne(context, buffers, reference, number, std::move(what), tensor.address,
                    output.dtype);
}

Status CompareCopies(const OracleContext& context, const TaskBuffers& buffers, Reference& reference,
                     size_t number) {
  const Reference::Output& output = reference.outputs[number];
  const auto sources = SourcesOf(context.spec, output.name);
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput || !IsFloat(tensor.spec->dtype) ||
        static_cast<uint64_t>(tensor.shape.elements) != output.elements)
      continue;
    if (sources && std::ranges::find(*sources, tensor.spec->name) == sources->end()) continue;
    ATUNNER_RETURN_IF_ERROR(CompareOne(context, buffers, reference, number,
                                       "a copy of '" + tensor.spec->name + "'", tensor.address,
                                       tensor.spec->dtype));
  }
  return {};
}

std::string Stated(const Tolerance& tolerance) {
  std::string text;
  if (tolerance.relative) text = fmt::format("relative {:g}", *tolerance.relative);
  if (!tolerance.absolute) return text;
  return fmt::format("{}{}absolute {:g}", text, text.empty() ? "" : ", ", *tolerance.absolute);
}

}  // namespace

bool StatesTolerance(const KernelSpec& spec) {
  return spec.tolerance.relative || spec.tolerance.absolute;
}

Status CompareTrivialOutputs(const OracleContext& context, const TaskBuffers& buffers,
                             Reference& reference) {
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    output.trivial.clear();
    if (!IsFloat(output.dtype) || output.overflows || !(output.self.squared_reference > 0))
      continue;
    ATUNNER_RETURN_IF_ERROR(CompareConstant(context, buffers, reference, i, kZeros, 0));
    if (output.elements > 1) {  // a single number is a constant
      const double mean = output.self.sum_reference / static_cast<double>(output.self.finite);
      ATUNNER_RETURN_IF_ERROR(CompareConstant(context, buffers, reference, i, kConstant, mean));
    }
    ATUNNER_RETURN_IF_ERROR(CompareCopies(context, buffers, reference, i));
  }
  return {};
}

void ToleranceTest::Add(const Reference& reference) {
  for (const Reference::Output& output : reference.outputs) {
    for (const Reference::Trivial& trivial : output.trivial)
      refused_[{output.name, trivial.what}] |= !trivial.within_tolerance;
  }
}

bool ToleranceTest::passed() const {
  return !refused_.empty() &&
         std::ranges::all_of(refused_, [](const auto& of) { return of.second; });
}

Status ToleranceTest::Check(const KernelSpec& spec) const {
  std::map<std::string, std::string> within;  // by output
  std::string simplest;                       // zeros before a constant before a copy
  for (const auto& [of, refused] : refused_) {
    if (refused) continue;
    std::string& list = within[of.first];
    list += (list.empty() ? "" : " or ") + of.second;
    if (simplest != kZeros && (simplest != kConstant || of.second == kZeros)) simplest = of.second;
  }
  if (within.empty()) return {};
  std::string outputs;
  for (const auto& [output, list] : within)
    outputs += fmt::format("{}'{}' ({})", outputs.empty() ? "" : ", ", output, list);
  return Invalid(fmt::format("the tolerance ({}) cannot tell the result from {}: {}",
                             Stated(spec.tolerance), simplest, outputs),
                 spec.name, "state a smaller tolerance, or none: then one is derived");
}

}  // namespace atunner
