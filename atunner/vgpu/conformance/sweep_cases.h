// Results of instructions for millions of operands, as hashes that a GPU recorded.
//
// The operands of block b are numbered from b × 2^16 on. An instruction of one operand gets the
// number itself: as its bits, as the upper half of a float64, or in both halves of a pair. One of
// two operands gets the pair that Operands() draws for the number. The hash of a block is the sum,
// modulo 2^32, of Mix64(number + 2^32 × bits of the result); of a float64 that is the upper half,
// and the lower one must be zero.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/vgpu/conformance/conformance_cases.h"

namespace atunner::vgpu {

struct ConformanceSweep {
  ConformanceForm form;                               ///< without cases
  std::vector<std::pair<uint32_t, uint32_t>> blocks;  ///< number and hash
};

constexpr uint32_t kSweptBlock = 1 << 16;

/// kInvalidInput with the line of what cannot be read.
Result<std::vector<ConformanceSweep>> ReadSweeps(const std::string& text);

/// The bits of the two operands with a number: all kinds of float32 numbers, by block: any bits,
/// usual exponents, subnormal dividends, large and small divisors, special values.
std::pair<uint32_t, uint32_t> Operands(uint32_t number);

/// One line for each block whose hash differs; counts the operands that ran.
std::vector<std::string> CheckSweeps(const std::vector<ConformanceSweep>& sweeps,
                                     const ConformanceRunner& run, size_t& operands);

}  // namespace atunner::vgpu
