// The device code inside of a program that nvcc built: the PTX of a fat binary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::program {

inline constexpr uint32_t kFatBinaryMagic = 0xba55ed50;
inline constexpr uint32_t kElfMagic = 0x464c457f;

struct FatBinary {
  struct Ptx {
    int arch = 0;  ///< 75, 90
    std::string text;
  };
  std::vector<Ptx> ptx;
  std::vector<int> machine_code;  ///< architectures that there is only machine code for
};

/// `image` begins with the fat binary's header and is as long as it says. kUnavailable when zstd
/// packed it and there is no libzstd here.
Result<FatBinary> ReadFatBinary(const char* image);
Result<FatBinary> ReadFatBinary(std::string_view image);

/// Of all PTX in the bytes of a program (an ELF file), also of several fat binaries; empty: there
/// is none, or no program.
std::vector<int> PtxArchitectures(std::string_view program);

/// PTX for a GPU of compute capability `arch`, the newest that fits it: kUnsupported says how to
/// build the program with.
Result<std::string> ChoosePtx(const FatBinary& binary, int arch);

/// What LZ4's block format holds; kInvalidInput unless it is exactly `bytes` long.
Result<std::string> UnpackLz4(const std::string& packed, size_t bytes);

}  // namespace atunner::program
