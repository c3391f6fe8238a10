// Limits of numbers in flags. CLI11's own messages show every digit of the largest number.
#pragma once

#include <CLI/CLI.hpp>

namespace atunner::cli {

/// A number above 0.
const CLI::Validator& Positive();
/// A number that is 0 or more.
const CLI::Validator& NotNegative();

}  // namespace atunner::cli
