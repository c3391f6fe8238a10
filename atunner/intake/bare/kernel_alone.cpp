#include "atunner/intake/bare/kernel_alone.h"

#include <fmt/format.h>

#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

constexpr int64_t kThreads = 256;  // of a block, if the kernel states no bound

}  // namespace

std::optional<LoneKernel> LoneKernelOf(const CudaSyntax& syntax, const KernelDefinition& kernel) {
  for (const char* name : {"threadIdx", "blockIdx"}) {
    for (const char* axis : {"y", "z"}) {
      if (Reads(syntax, kernel, name, axis)) return std::nullopt;
    }
  }
  LoneKernel lone;
  for (const KernelParameter& parameter : kernel.parameters) {
    const auto type = ParseCType(parameter.type);
    if (parameter.pointer || !type || IsFloat(type->dtype) || type->dtype == DType::kBool) continue;
    if (!lone.size.empty()) return std::nullopt;
    lone.size = parameter.name;
  }
  if (lone.size.empty()) return std::nullopt;
  lone.threads = std::to_string(LiteralOf(LaunchBound(syntax, kernel)).value_or(kThreads));
  return lone;
}

std::string Describe(const LoneKernel& kernel) {
  return fmt::format("block = {}, grid = ceil_div({}, {}) and {} elements of each buffer",
                     kernel.threads, kernel.size, kernel.threads, kernel.size);
}

}  // namespace atunner
