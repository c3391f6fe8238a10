#include "atunner/model/value/device_profile.h"

namespace atunner {

std::string DeviceProfile::Arch() const {
  const int cc = cc_major * 10 + cc_minor;
  if (cc < 75) return "compute_75";
  const bool accelerated = cc >= 90;
  return "sm_" + std::to_string(cc) + (accelerated ? "a" : "");
}

double DeviceProfile::PeakFlops(DType dtype, bool tensor_cores) const {
  const auto per_clk = [&]() -> double {
    switch (dtype) {
      case DType::kFloat64:
        return tensor_cores && tensor_fp64_fma_per_clk > 0 ? tensor_fp64_fma_per_clk : fp64_per_clk;
      case DType::kFloat32:
        return tensor_cores && tensor_tf32_fma_per_clk > 0 ? tensor_tf32_fma_per_clk : fp32_per_clk;
      case DType::kFloat16:
      case DType::kBFloat16:
        return tensor_cores && tensor_fp16_fma_per_clk > 0 ? tensor_fp16_fma_per_clk : fp16_per_clk;
      default:
        return tensor_cores && tensor_int8_fma_per_clk > 0 && SizeOf(dtype) == 1
                   ? tensor_int8_fma_per_clk
                   : imad_per_clk;
    }
  }();
  return 2.0 * per_clk * sms * clock_ghz * 1e9;
}

}  // namespace atunner
