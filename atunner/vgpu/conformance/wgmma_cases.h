// Cases for wgmma on any device: operands laid out in shared memory by the PTX ISA's canonical
// layouts, and what the product must be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::vgpu {

struct WgmmaCase {
  std::string a = "f16", b = "f16", d = "f32";  ///< types
  int n = 8;
  int swizzle_a = 0, swizzle_b = 0;  ///< bytes, 0 = none
  bool transposed_a = false, transposed_b = false;
  bool a_in_registers = false;
  /// The operands start this many products behind the first chunk of a swizzled row
  int k_step = 0;
  int sign_a = 1, sign_b = 1;
  bool add = true;
  bool saturate = false;
  bool sparse = false;  ///< half of A's elements are there
  int selector = 0;     ///< of the lanes that say which

  std::string Name() const;
};

/// Every combination of types, swizzling and order at least once.
std::vector<WgmmaCase> WgmmaCases();

/// Input and expected output of a kernel with 128 threads.
struct WgmmaData {
  std::string ptx;                 ///< entry `product`, parameters: input, output
  std::vector<uint32_t> input;     ///< shared memory, then per thread: accumulators, A's registers
  std::vector<uint32_t> expected;  ///< per thread: accumulators
  uint32_t threads = 128;
};
WgmmaData MakeWgmmaData(const WgmmaCase& one);

/// mma.sync of one warp, likewise.
struct MmaCase {
  std::string a = "f16", b = "f16", d = "f32";
  int m = 16, k = 16;
  std::string bit_operation;  ///< of single bits: "and" or "xor"

  std::string Mnemonic() const;
};
std::vector<MmaCase> MmaCases();
WgmmaData MakeMmaData(const MmaCase& one);

/// Runs entry `product` with one block of `threads`; gives the output.
using WgmmaRunner = std::function<Result<std::vector<uint32_t>>(const WgmmaData& data)>;
/// The differences, one line per case.
std::vector<std::string> CheckWgmma(const std::vector<WgmmaCase>& cases, const WgmmaRunner& run);
/// Cases for mma.m8n8k4 of all layouts and types (quad_cases.cpp).
std::vector<std::string> CheckQuads(const WgmmaRunner& run);
std::vector<std::string> CheckMma(const std::vector<MmaCase>& cases, const WgmmaRunner& run);

}  // namespace atunner::vgpu
