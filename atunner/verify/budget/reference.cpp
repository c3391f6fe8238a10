#include "atunner/verify/budget/reference.h"

#include <algorithm>

namespace atunner {
namespace {

constexpr uint64_t kSmallBytes = 8 << 20;
/// Share of an output's elements that may be undetermined; beyond it the others prove too little.
constexpr double kMostUndetermined = 0.25;

}  // namespace

void Reference::DropValues() {
  for (Output& output : outputs) output.masked.reset();
}

bool Reference::HasValues() const {
  return parts != nullptr || std::ranges::all_of(outputs, [](const Output& output) {
           return output.masked != nullptr;
         });
}

uint64_t Reference::HeldBytes() const {
  uint64_t held = 0;
  for (const Output& output : outputs) {
    held += output.masked ? output.masked->bytes() : 0;
    held += output.decision_memory ? output.decision_memory->bytes() : 0;
  }
  return held;
}

bool Reference::small() const { return bytes < kSmallBytes; }

bool Reference::discriminates() const {
  return !mostly_undetermined() &&
         std::ranges::all_of(outputs, [](const Output& output) { return output.discriminates; });
}

bool Reference::mostly_undetermined() const {
  return std::ranges::any_of(outputs, [](const Output& output) {
    return static_cast<double>(output.undetermined) >
           kMostUndetermined * static_cast<double>(output.self.finite);
  });
}

bool Reference::overflows() const {
  return std::ranges::any_of(outputs, [](const Output& output) { return output.overflows; });
}

Result<CompareStats> CompareWith(const OracleContext& context, const TaskBuffers& buffers,
                                 const Reference& reference, size_t output,
                                 CompareRequest request) {
  const Reference::Output& of = reference.outputs[output];
  request.reference_dtype = of.stored;
  request.key = of.key;
  if (reference.parts == nullptr) {
    request.reference = of.masked->address();
    request.elements = of.elements;
    if (request.data == 0) request.data = request.reference;
    return context.kernels.Compare(request);
  }
  CompareStats all;
  const DeviceAddress data = request.data;
  request.total = of.elements;
  ATUNNER_RETURN_IF_ERROR(
      reference.parts->Visit(buffers, reference, [&](const ReferenceParts::Part& part) -> Status {
        const ReferenceParts::Part::Values& values = part.outputs[output];
        request.reference = values.address;
        request.elements = values.elements;
        request.first = values.first;
        request.data = data == 0 ? values.address : data + values.first * SizeOf(request.dtype);
        ATUNNER_TRY(const CompareStats one, context.kernels.Compare(request));
        all.AddPart(one);
        return {};
      }));
  return all;
}

Result<CompareStats> CompareWithReference(const OracleContext& context, const TaskBuffers& buffers,
                                          const Reference& reference, size_t output,
                                          DeviceAddress data, double element_bound,
                                          const std::optional<Poison>& poison) {
  const Reference::Output& of = reference.outputs[output];
  CompareRequest request{.data = data, .dtype = of.dtype, .scale = of.scale};
  request.element_bound = element_bound;
  request.poison = poison;
  request.decisions = of.decision_slots;
  request.nan_for_infinite = of.nan_for_infinite;
  return CompareWith(context, buffers, reference, output, request);
}

}  // namespace atunner
