// Random but valid contents of index arrays (index_arrays.h).
#pragma once

#include "atunner/intake/bare/source_reading.h"

namespace atunner {

/// Sets fills for the integer tensors whose values address other tensors, so that all indices lie
/// within these. The values that the host puts into them are unknown. Call it after all arguments
/// were read.
void FillIndexArrays(SourceReading& reading);

}  // namespace atunner
