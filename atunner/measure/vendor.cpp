#include "atunner/measure/vendor.h"

#include <algorithm>
#include <string_view>

#include "atunner/measure/vendor_subjects.h"

namespace atunner {
namespace {

struct Entry {
  std::string_view operator_name;
  std::string_view library;
  Result<std::unique_ptr<Subject>> (*make)(TimedDevice&, const KernelSpec&);
};

constexpr Entry kEntries[] = {
    {"matmul", "cuBLAS", MakeCublasMatmul},
    {"conv2d", "cuDNN", MakeCudnnConvolution},
    {"softmax", "cuDNN", MakeCudnnSoftmax},
    {"softmax_backward", "cuDNN", MakeCudnnSoftmax},
};

}  // namespace

std::vector<std::string> VendorNames(const KernelSpec& spec) {
  std::vector<std::string> names;
  if (spec.oracle.kind != Oracle::Kind::kOperator) return names;
  for (const Entry& entry : kEntries) {
    if (entry.operator_name == spec.name) names.emplace_back(entry.library);
  }
  return names;
}

Result<std::unique_ptr<Subject>> MakeVendorSubject(const std::string& name, TimedDevice& device,
                                                   const KernelSpec& spec) {
  const auto entry = std::ranges::find_if(
      kEntries, [&](const Entry& one) { return one.library == name && one.operator_name == spec.name; });
  if (entry == std::end(kEntries)) return Fail(ErrorCode::kUnsupported, name + " does not compute " + spec.name);
  return entry->make(device, spec);
}

}  // namespace atunner
