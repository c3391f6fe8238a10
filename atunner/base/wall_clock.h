// The time of day as a number; durations are measured with Clock.
#pragma once

#include <cstdint>

namespace atunner {

/// Nanoseconds since the beginning of 1970, UTC.
uint64_t NanosecondsSince1970();

}  // namespace atunner
