// Host headers that real .cu files include and NVRTC does not have. Device code needs little of them.
#pragma once

#include <cstdint>
#include <string_view>

namespace atunner {

struct VirtualHeader {
  const char* name;
  const char* text;
};

inline constexpr const char* kEmptyHeader = "";
inline constexpr const char* kIntegerTypes =
    "#pragma once\n"
    "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;\n"
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;\n"
    "typedef unsigned long long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t;\n"
    "namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;\n"
    "using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; }\n"
    "#ifndef INT32_MAX\n#define INT32_MAX 2147483647\n#define INT32_MIN (-2147483647-1)\n#define UINT32_MAX "
    "4294967295u\n"
    "#define INT64_MAX 9223372036854775807ll\n#define UINT64_MAX 18446744073709551615ull\n#endif\n";
inline constexpr const char* kFloatLimits =
    "#pragma once\n#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n#define FLT_EPSILON "
    "1.192092896e-07f\n"
    "#define DBL_MAX 1.7976931348623158e+308\n#define DBL_MIN 2.2250738585072014e-308\n#define DBL_EPSILON "
    "2.2204460492503131e-16\n";
inline constexpr const char* kIntegerLimits =
    "#pragma once\n#define CHAR_BIT 8\n#define INT_MAX 2147483647\n#define INT_MIN (-2147483647-1)\n#define UINT_MAX "
    "4294967295u\n"
    "#define SHRT_MAX 32767\n#define LLONG_MAX 9223372036854775807ll\n#define ULLONG_MAX 18446744073709551615ull\n";

inline constexpr const char* kMath =
    "#pragma once\n#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#define NAN "
    "__int_as_float(0x7fffffff)\n#endif\n"
    "#define M_PI 3.14159265358979323846\n#define M_E 2.7182818284590452354\n#define M_SQRT2 1.41421356237309504880\n"
    "#define M_LOG2E 1.4426950408889634074\n#define M_LN2 0.69314718055994530942\n#define M_PI_2 "
    "1.57079632679489661923\n";

/// What device code uses of CUB; the rest launches kernels from the host, and includes its headers.
inline constexpr const char* kCub =
    "#pragma once\n"
    "#include <cub/block/block_adjacent_difference.cuh>\n#include <cub/block/block_discontinuity.cuh>\n"
    "#include <cub/block/block_exchange.cuh>\n#include <cub/block/block_histogram.cuh>\n"
    "#include <cub/block/block_load.cuh>\n#include <cub/block/block_merge_sort.cuh>\n"
    "#include <cub/block/block_radix_sort.cuh>\n#include <cub/block/block_reduce.cuh>\n"
    "#include <cub/block/block_run_length_decode.cuh>\n#include <cub/block/block_scan.cuh>\n"
    "#include <cub/block/block_shuffle.cuh>\n#include <cub/block/block_store.cuh>\n"
    "#include <cub/warp/warp_exchange.cuh>\n#include <cub/warp/warp_load.cuh>\n"
    "#include <cub/warp/warp_merge_sort.cuh>\n#include <cub/warp/warp_reduce.cuh>\n"
    "#include <cub/warp/warp_scan.cuh>\n#include <cub/warp/warp_store.cuh>\n";

inline constexpr VirtualHeader kVirtualHeaders[] = {
    {"stdint.h", kIntegerTypes},
    {"cstdint", kIntegerTypes},
    {"float.h", kFloatLimits},
    {"cfloat", kFloatLimits},
    {"limits.h", kIntegerLimits},
    {"climits", kIntegerLimits},
    {"stddef.h", kEmptyHeader},
    {"cstddef", kEmptyHeader},
    {"stdio.h", kEmptyHeader},
    {"cstdio", kEmptyHeader},
    {"stdlib.h", kEmptyHeader},
    {"cstdlib", kEmptyHeader},
    {"math.h", kMath},
    {"cmath", kMath},
    {"string.h", kEmptyHeader},
    {"cstring", kEmptyHeader},
    {"assert.h", kEmptyHeader},
    {"cassert", kEmptyHeader},
    {"iostream", kEmptyHeader},
    {"algorithm", kEmptyHeader},
    {"vector", kEmptyHeader},
    {"string", kEmptyHeader},
    {"random", kEmptyHeader},
    {"chrono", kEmptyHeader},
    {"time.h", kEmptyHeader},
    {"ctime", kEmptyHeader},
    {"sys/time.h", kEmptyHeader},
    {"cuda.h", kEmptyHeader},
    {"cuda_runtime.h", kEmptyHeader},
    {"cuda_runtime_api.h", kEmptyHeader},
    {"device_launch_parameters.h", kEmptyHeader},
    {"cub/cub.cuh", kCub},
};

}  // namespace atunner
