#include "atunner/codegen/template/costs.h"

#include <array>

namespace atunner {
namespace {

constexpr int kMajors = 16;

/// One table for each major compute capability.
std::array<CostConstants, kMajors> Tables() {
  std::array<CostConstants, kMajors> tables;
#define ATUNNER_COST(name, value, unit, meaning, source)
#define ATUNNER_COST_ON(cc_major, name, value, source) tables[cc_major].name = value;
#include "atunner/codegen/template/costs.def"
#undef ATUNNER_COST_ON
#undef ATUNNER_COST
  return tables;
}

}  // namespace

const CostConstants& CostsOf(const DeviceProfile& profile) {
  static const std::array<CostConstants, kMajors> tables = Tables();
  const int major = profile.cc_major;
  return tables[major >= 0 && major < kMajors ? static_cast<size_t>(major) : 0];
}

}  // namespace atunner
