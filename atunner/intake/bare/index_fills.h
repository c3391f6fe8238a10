// Made-up contents of arrays that hold places in other arrays.
#pragma once

#include "atunner/intake/bare/source_reading.h"

namespace atunner {

/// Integers that address other arrays must lie within them; what the host fills them with is not
/// known. All arguments have been read.
void FillIndexArrays(SourceReading& reading);

}  // namespace atunner
