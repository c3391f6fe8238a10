// The driver's C interface is shared with the runtime library, so it lives in base.
#pragma once

#include "atunner/base/cuda_abi.h"  // IWYU pragma: export
