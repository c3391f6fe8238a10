// The device code in a program that nvcc built: PTX in fat binaries.
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
  std::vector<int> machine_code;  ///< architectures for which there is only machine code
};

/// `image` begins with the fat binary's header, which states its length. kUnavailable when it is
/// compressed by zstd and no libzstd is installed.
Result<FatBinary> ReadFatBinary(const char* image);
Result<FatBinary> ReadFatBinary(std::string_view image);

/// Architectures of all PTX in a program (the bytes of an ELF file), in any of its fat binaries.
/// Empty if there is no PTX or the bytes are not a program.
std::vector<int> PtxArchitectures(std::string_view program);

/// The newest PTX that a GPU of compute capability `arch` (90 for 9.0) can run. kUnsupported, with
/// a hint how to build the program, if there is none.
Result<std::string> ChoosePtx(const FatBinary& binary, int arch);

/// The machine code (a cubin) that a GPU of compute capability `arch` runs; "" if there is none.
Result<std::string> ChooseCubin(const char* image, int arch);

/// Links the PTX of the fat binaries that relocatable code was linked from, with a null pointer
/// behind them. Those without PTX belong to the CUDA toolkit and are left out.
Result<std::string> LinkedPtx(const char* const* images, int arch);

/// Decompresses a block of LZ4. kInvalidInput unless the result has exactly `bytes` bytes.
Result<std::string> UnpackLz4(const std::string& packed, size_t bytes);

}  // namespace atunner::program
