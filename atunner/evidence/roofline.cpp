#include "atunner/evidence/roofline.h"

#include <algorithm>

namespace atunner::evidence {

Roofline RooflineOf(const CounterSet& counters, const DeviceProfile& profile) {
  constexpr double kFlopsPerInstruction = 2 * 32;  // a multiply-add of 32 threads
  Roofline roofline;
  const double bytes = ValueOf(counters, Counter::kDramBytes).value_or(0);
  const double ns = ValueOf(counters, Counter::kTime).value_or(0);
  const double peak = profile.PeakFlops(DType::kFloat32, false),
               bandwidth = profile.dram_gbps * 1e9;
  roofline.flops = kFlopsPerInstruction * ValueOf(counters, Counter::kFma).value_or(0);
  roofline.intensity = bytes > 0 ? roofline.flops / bytes : 0;
  roofline.flop_rate = ns > 0 ? roofline.flops / ns * 1e9 : 0;
  roofline.attainable_rate = bytes > 0 ? std::min(peak, roofline.intensity * bandwidth) : peak;
  roofline.ridge = bandwidth > 0 ? peak / bandwidth : 0;
  return roofline;
}

}  // namespace atunner::evidence
