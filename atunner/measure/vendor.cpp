#include "atunner/measure/vendor.h"

#include <algorithm>
#include <climits>
#include <string_view>

#include "atunner/measure/vendor_kernels.h"

namespace atunner {
namespace {

struct Entry {
  std::string_view operator_name;
  std::string_view library;
  Result<std::unique_ptr<TimedKernel>> (*make)(TimedDevice&, const KernelSpec&);
};

constexpr Entry kEntries[] = {
    {"matmul", "cuBLAS", MakeCublasMatmul},
    {"conv2d", "cuDNN", MakeCudnnConvolution},
    {"softmax", "cuDNN", MakeCudnnSoftmax},
    {"softmax_backward", "cuDNN", MakeCudnnSoftmax},
};

}  // namespace

Status CheckExtents(const char* library, const KernelSpec& spec) {
  for (const auto& [name, extent] : spec.dims) {
    if (extent > INT_MAX)
      return Fail(ErrorCode::kUnsupported,
                  std::string(library) + " counts in 31 bits, " + name + " is larger");
  }
  return {};
}

void* PointerTo(const TaskBuffers& buffers, const char* name) {
  return reinterpret_cast<void*>(
      buffers.Find(name)->address);  // NOLINT(performance-no-int-to-ptr): a device address
}

std::vector<std::string> VendorNames(const KernelSpec& spec) {
  std::vector<std::string> names;
  if (spec.oracle.kind != Oracle::Kind::kOperator) return names;
  for (const Entry& entry : kEntries) {
    if (entry.operator_name == spec.name) names.emplace_back(entry.library);
  }
  return names;
}

Result<std::unique_ptr<TimedKernel>> MakeVendorKernel(const std::string& name, TimedDevice& device,
                                                      const KernelSpec& spec) {
  const auto entry = std::ranges::find_if(kEntries, [&](const Entry& one) {
    return one.library == name && one.operator_name == spec.name;
  });
  if (entry == std::end(kEntries))
    return Fail(ErrorCode::kUnsupported, name + " does not compute " + spec.name);
  return entry->make(device, spec);
}

}  // namespace atunner
