#include "atunner/verify/oracle/reference_source.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "atunner/model/kernel/tensor_totals.h"

namespace atunner {
namespace {

// FLOP of the float64 reference on one core in about a tenth of a second
constexpr double kCpuFlops = 2e8;
// With a virtual GPU the alternative, interpreting a kernel, is slower still.
constexpr double kCpuFlopsVirtual = 5e9;
// For larger tensors compiling and running a float64 kernel is faster.
constexpr double kCpuElements = 1e6;
constexpr double kVirtualTimesElements = 32;

Result<std::vector<double>> DownloadWide(Device& device, const TaskBuffers::Tensor& tensor) {
  std::vector<std::byte> raw(static_cast<size_t>(tensor.shape.bytes));
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(raw, tensor.address));
  std::vector<double> wide(static_cast<size_t>(tensor.shape.elements));
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = LoadElement(tensor.spec->dtype, raw.data(), i);
  return wide;
}

}  // namespace

Status ComputeReference(ReferenceSource& source, const TaskBuffers& buffers, const RangeOf& wide) {
  const int64_t parts = source.Parts(buffers.dims());
  for (int64_t part = 0; part < parts; ++part)
    ATUNNER_RETURN_IF_ERROR(source.ComputePart(buffers, wide, part));
  return {};
}

Status PartedReferences::Visit(const TaskBuffers& buffers, const Reference& reference,
                               const std::function<Status(const Part&)>& visit) {
  const int64_t parts = source_.Parts(buffers.dims());
  std::vector<std::unique_ptr<Buffer>> memory;
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(
        memory.emplace_back(),
        context_.device.Allocate(output.elements / static_cast<uint64_t>(parts) * sizeof(double)));
  }
  const auto number_of = [&](const std::string& name) {
    return static_cast<size_t>(
        std::ranges::find(reference.outputs, name, &Reference::Output::name) -
        reference.outputs.begin());
  };
  for (int64_t number = 0; number < parts; ++number) {
    // Where the whole output would begin, so that this part of it is in `memory`.
    const RangeOf whole = [&](const std::string& name) -> std::optional<MemoryRange> {
      const size_t i = number_of(name);
      if (i == reference.outputs.size()) return std::nullopt;
      const uint64_t before = memory[i]->bytes() * static_cast<uint64_t>(number);
      return MemoryRange{memory[i]->address() - before,
                         memory[i]->bytes() * static_cast<uint64_t>(parts)};
    };
    ATUNNER_RETURN_IF_ERROR(source_.ComputePart(buffers, whole, number));
    Part part{number, {}};
    for (size_t i = 0; i < memory.size(); ++i) {
      const uint64_t elements = memory[i]->bytes() / sizeof(double);
      part.outputs.push_back(
          {memory[i]->address(), elements * static_cast<uint64_t>(number), elements});
    }
    ATUNNER_RETURN_IF_ERROR(visit(part));
  }
  for (const auto& one : memory)
    ATUNNER_RETURN_IF_ERROR(context_.device.Fill(one->address(), 0, one->bytes()));
  return {};
}

bool OperatorReference::UseCpu(const Dims& dims) const {
  if (context_.memory.IsLarge(context_.device, context_.spec, dims)) return false;
  const double flops = FlopCount(context_.spec, dims).value_or(1e300);
  // Elements and not bytes, because a packed 4-bit weight takes as long as a float.
  const double elements = TotalsOf(context_.spec, dims).elements;
  const bool is_virtual = context_.device.evidence() == Evidence::kPredicted;
  return flops <= (is_virtual ? kCpuFlopsVirtual : kCpuFlops) &&
         elements <= kCpuElements * (is_virtual ? kVirtualTimesElements : 1);
}

std::string OperatorReference::Describe(const Dims& dims) const {
  return UseCpu(dims) ? "float64 reference on the CPU" : "plain kernel in float64";
}

int64_t OperatorReference::Parts(const Dims& dims) const {
  return UseCpu(dims) ? 1 : kernels_.Slices(dims);
}

Status OperatorReference::ComputePart(const TaskBuffers& buffers, const RangeOf& wide,
                                      int64_t part) {
  return UseCpu(buffers.dims()) ? ComputeOnCpu(buffers, wide)
                                : kernels_.RunWideSlice(buffers, wide, part);
}

Status OperatorReference::ComputeOnCpu(const TaskBuffers& buffers, const RangeOf& wide) const {
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> outputs;
  std::vector<std::string> names;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.is_input()) {
      ATUNNER_TRY(std::vector<double> values, DownloadWide(context_.device, tensor));
      inputs.push_back(std::move(values));
    }
    if (!tensor.is_output()) continue;
    outputs.emplace_back(static_cast<size_t>(tensor.shape.elements));
    names.push_back(tensor.spec->name);
  }
  ATUNNER_RETURN_IF_ERROR(operator_.Reference(context_.spec, buffers.dims(), inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    ATUNNER_RETURN_IF_ERROR(
        context_.device.CopyIn(wide(names[i])->address, std::as_bytes(std::span(outputs[i]))));
  }
  return {};
}

}  // namespace atunner
