// The constants of the cost estimates, one table per architecture.
#pragma once

#include "atunner/model/value/device_profile.h"

namespace atunner {

/// Fields, units and sources: costs.def.
struct CostConstants {
#define ATUNNER_COST(name, value, unit, meaning, source) decltype(value) name = value;
#define ATUNNER_COST_ON(cc_major, name, value, source)
#include "atunner/codegen/template/costs.def"
#undef ATUNNER_COST_ON
#undef ATUNNER_COST
};

/// The constants for the architecture of `profile`; they live as long as the program.
const CostConstants& CostsOf(const DeviceProfile& profile);

}  // namespace atunner
