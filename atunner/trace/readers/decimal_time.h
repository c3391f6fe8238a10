// Decimal numbers of microseconds as nanoseconds, without a floating-point number in between: a
// double cannot hold 1714012345678901.234 µs to the nanosecond.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace atunner::trace {

/// "1714012345678901.234" is 1714012345678901234. Takes what JSON calls a number, exponents too.
/// Digits below a nanosecond are cut off. nullopt for anything else, or beyond ±4e18 ns.
std::optional<int64_t> NanosecondsOf(std::string_view microseconds);

/// A whole number; nullopt for anything else or beyond 64 bits.
std::optional<int64_t> IntegerOf(std::string_view text);

}  // namespace atunner::trace
