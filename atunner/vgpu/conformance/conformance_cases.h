// The conformance files (conformance/generate.py says what they hold) as kernels for any device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::vgpu {

struct ConformanceCase {
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;
  std::vector<bool> any_nan;  ///< per output: any NaN will do
};

struct ConformanceForm {
  std::string ptx;
  std::vector<std::string> outputs;  ///< types: "s32", "pred"
  std::vector<std::string> inputs;
  double relative = 0;  ///< 0 and no `absolute` = exact
  double absolute = 0;
  int arch = 75;  ///< least
  std::vector<ConformanceCase> cases;
};

/// kInvalidInput with the line of what cannot be read.
Result<std::vector<ConformanceForm>> ReadConformance(const std::string& text);

/// One module with a kernel `form<i>` for each form; parameters: inputs, outputs (64-bit slots),
/// number of cases.
std::string ConformanceModule(const std::vector<ConformanceForm>& forms, int arch);

/// Runs kernel `entry` of `ptx` over packed inputs; gives the packed outputs.
using ConformanceRunner = std::function<Result<std::vector<uint64_t>>(
    const std::string& ptx, const std::string& entry, const std::vector<uint64_t>& inputs,
    size_t cases, size_t outputs)>;

/// One line for each case that differs, at most `limit`; counts what ran. Forms beyond
/// `device_arch` are left out.
std::vector<std::string> CheckConformance(const std::vector<ConformanceForm>& forms,
                                          int device_arch, const ConformanceRunner& run,
                                          size_t& cases_run, size_t limit = 40);

}  // namespace atunner::vgpu
