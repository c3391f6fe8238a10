#include "atunner/compile/virtual_headers.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "embed/headers.h"

namespace atunner {
namespace {

constexpr std::string_view kComplex =
    "#pragma once\n#include <cuda/std/complex>\nnamespace std { using ::cuda::std::complex; }\n";

/// Short type names from the host's C library, which sources for nvcc use without an #include.
constexpr std::string_view kSysTypes =
    "#pragma once\n#include <stdint.h>\ntypedef unsigned int uint;\ntypedef unsigned short "
    "ushort;\ntypedef unsigned "
    "long ulong;\n";

constexpr std::pair<const char*, std::string_view> kWithText[] = {
    {"algorithm", embed::kAlgorithmCuh},
    {"array", embed::kArrayCuh},
    {"cfloat", embed::kLimitsCCuh},
    {"climits", embed::kLimitsCCuh},
    {"cmath", embed::kCmathCuh},
    {"complex", kComplex},
    {"cstddef", embed::kStddefCuh},
    {"cstdint", embed::kStdintCuh},
    {"cub/cub.cuh", embed::kCubCuh},
    {"float.h", embed::kLimitsCCuh},
    {"functional", embed::kFunctionalCuh},
    {"inttypes.h", embed::kStdintCuh},
    {kImplicitHeader, embed::kImplicitCudaRuntimeCuh},
    {"limits", embed::kLimitsCuh},
    {"limits.h", embed::kLimitsCCuh},
    {"math.h", embed::kCmathCuh},
    {"stddef.h", embed::kStddefCuh},
    {"stdint.h", embed::kStdintCuh},
    {"type_traits", embed::kTypeTraitsCuh},
    {"utility", embed::kUtilityCuh},
    {"sys/types.h", kSysTypes},
};

/// Headers of PyTorch that extensions include. NVRTC cannot read the real ones, which need the
/// host's standard library.
constexpr std::string_view kOfTorch =
    "ATen/ATen.h ATen/AccumulateType.h ATen/Dispatch.h ATen/OpMathType.h ATen/cuda/CUDAContext.h "
    "ATen/cuda/detail/KernelUtils.h c10/cuda/CUDAException.h c10/cuda/CUDAGuard.h "
    "c10/cuda/CUDAStream.h "
    "c10/util/BFloat16.h c10/util/Half.h torch/all.h torch/extension.h torch/library.h "
    "torch/torch.h "
    "torch/types.h";

/// Host-only headers in CUDA's include folders; NVRTC cannot read most of them.
constexpr std::string_view kOfTheHost =
    "cub/device/device_for.cuh cub/device/device_histogram.cuh cub/device/device_merge_sort.cuh "
    "cub/device/device_partition.cuh cub/device/device_radix_sort.cuh cub/device/device_reduce.cuh "
    "cub/device/device_run_length_encode.cuh cub/device/device_scan.cuh "
    "cub/device/device_segmented_radix_sort.cuh cub/device/device_segmented_reduce.cuh "
    "cub/device/device_select.cuh cub/device/device_transform.cuh cublas.h cublasLt.h cublasXt.h "
    "cublas_api.h "
    "cublas_v2.h cuda.h cudaGL.h cudaProfiler.h cuda_egl_interop.h cuda_gl_interop.h "
    "cuda_profiler_api.h "
    "cuda_runtime.h cuda_runtime_api.h cudnn.h cufft.h cufftXt.h cupti.h cusolverDn.h cusolverMg.h "
    "cusolverRf.h "
    "cusolverSp.h cusolver_common.h cusparse.h cusparse_v2.h device_launch_parameters.h nccl.h "
    "npp.h nppi.h "
    "npps.h nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvjpeg.h nvml.h nvrtc.h "
    "nvtx3/nvToolsExt.h "
    "nvtx3/nvToolsExtCuda.h nvtx3/nvToolsExtCudaRt.h nvtx3/nvtx3.hpp thrust/adjacent_difference.h "
    "thrust/binary_search.h thrust/copy.h thrust/count.h thrust/device_free.h "
    "thrust/device_malloc.h "
    "thrust/device_new.h thrust/device_ptr.h thrust/device_vector.h thrust/equal.h "
    "thrust/execution_policy.h "
    "thrust/extrema.h thrust/fill.h thrust/find.h thrust/for_each.h thrust/functional.h "
    "thrust/gather.h "
    "thrust/generate.h thrust/host_vector.h thrust/inner_product.h thrust/logical.h "
    "thrust/memory.h "
    "thrust/merge.h thrust/partition.h thrust/random.h thrust/reduce.h thrust/remove.h "
    "thrust/replace.h "
    "thrust/reverse.h thrust/scan.h thrust/scatter.h thrust/sequence.h thrust/set_operations.h "
    "thrust/shuffle.h "
    "thrust/sort.h thrust/swap.h thrust/system/cuda/execution_policy.h thrust/system_error.h "
    "thrust/tabulate.h "
    "thrust/transform.h thrust/transform_reduce.h thrust/transform_scan.h thrust/unique.h";

/// Headers of the C and C++ standard libraries without a text above. Sources often include them in
/// quotation marks too.
constexpr std::string_view kOfTheLanguage =
    "any assert.h atomic bitset cassert cctype cerrno charconv chrono cinttypes complex.h "
    "condition_variable "
    "csignal cstdarg cstdio cstdlib cstring ctime ctype.h deque dirent.h dlfcn.h errno.h exception "
    "fcntl.h "
    "filesystem forward_list fstream future getopt.h initializer_list iomanip ios iosfwd iostream "
    "istream "
    "iterator list locale malloc.h map memory memory.h mpi.h mutex new numeric omp.h optional "
    "ostream pthread.h "
    "queue random ratio regex set shared_mutex signal.h span sstream stack stdarg.h stdbool.h "
    "stdexcept stdio.h "
    "stdlib.h streambuf string string.h string_view strings.h sys/mman.h sys/stat.h sys/time.h "
    "system_error thread time.h tuple typeindex typeinfo unistd.h unordered_map unordered_set "
    "valarray variant "
    "vector";

void AddAll(VirtualHeaders& headers, std::string_view names, std::string_view text) {
  for (const auto name : std::views::split(names, ' '))
    headers.emplace(std::string(name.begin(), name.end()), text);
}

}  // namespace

const VirtualHeaders& KnownHeaders() {
  static const VirtualHeaders headers = [] {
    VirtualHeaders all(std::begin(kWithText), std::end(kWithText));
    AddAll(all, kOfTorch, embed::kTorchCuh);
    AddAll(all, kOfTheHost, "");
    AddAll(all, kOfTheLanguage, "");
    return all;
  }();
  return headers;
}

bool MissesImplicitName(std::string_view log) {
  static constexpr std::string_view kNames =
      "uint ushort ulong int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
      "intptr_t "
      "uintptr_t intmax_t uintmax_t ptrdiff_t INT8_MAX INT8_MIN UINT8_MAX INT16_MAX INT16_MIN "
      "UINT16_MAX INT32_MAX INT32_MIN UINT32_MAX INT64_MAX INT64_MIN UINT64_MAX SIZE_MAX NULL "
      "INFINITY NAN HUGE_VAL HUGE_VALF MAXFLOAT M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 "
      "M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 CHAR_BIT SCHAR_MAX SCHAR_MIN UCHAR_MAX "
      "CHAR_MAX CHAR_MIN SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN "
      "ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX FLT_MAX FLT_MIN FLT_EPSILON FLT_DIG FLT_MANT_DIG "
      "FLT_RADIX FLT_MAX_EXP FLT_MIN_EXP FLT_TRUE_MIN FLT_DECIMAL_DIG DBL_MAX DBL_MIN DBL_EPSILON "
      "DBL_DIG DBL_MANT_DIG DBL_MAX_EXP DBL_MIN_EXP DBL_TRUE_MIN DBL_DECIMAL_DIG LDBL_MAX "
      "LDBL_MIN LDBL_EPSILON RAND_MAX EXIT_SUCCESS EXIT_FAILURE offsetof std";
  constexpr std::string_view kUndefined[] = {"identifier \"", "name \""};
  if (log.find("namespace \"std\" has no member") != std::string_view::npos ||
      log.find("must be a class or namespace name") != std::string_view::npos)
    return true;
  return std::ranges::any_of(std::views::split(kNames, ' '), [&](const auto& name) {
    const std::string quoted = std::string(name.begin(), name.end()) + "\" is undefined";
    return std::ranges::any_of(kUndefined, [&](std::string_view before) {
      return log.find(std::string(before) + quoted) != std::string_view::npos;
    });
  });
}

std::optional<std::string> AbsentHeader(std::string_view log) {
  constexpr std::string_view kSaid = "cannot open source file \"";
  const size_t said = log.find(kSaid);
  if (said == std::string_view::npos) return std::nullopt;
  const size_t begin = said + kSaid.size();
  const size_t end = log.find('"', begin);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string name(log.substr(begin, end - begin));
  return log.find("<" + name + ">", end) != std::string_view::npos ? std::optional(name)
                                                                   : std::nullopt;
}

}  // namespace atunner
