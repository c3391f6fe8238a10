#include "atunner/trace/analysis/kernel_class.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace atunner::trace {
namespace {

using Words = std::vector<std::string_view>;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool HasAny(const std::string& lower, const Words& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

std::string_view Name(KernelClass value) {
  static constexpr std::string_view kNames[] = {
      "matmul",        "convolution", "attention", "communication", "elementwise", "reduction",
      "normalization", "softmax",     "layout",    "indexing",      "optimizer",   "other"};
  return kNames[static_cast<size_t>(value)];
}

KernelClass ClassOfKernel(std::string_view name) {
  // The first row with a word in the name decides: special sorts stand before general ones.
  static const std::vector<std::pair<KernelClass, Words>> kRows = {
      {KernelClass::kCommunication,
       {"nccl", "rccl", "all_reduce_kernel", "allreduce", "allgather", "all_gather",
        "reducescatter", "reduce_scatter", "alltoall", "nvshmem", "cross_device_reduce"}},
      {KernelClass::kAttention, {"flash", "fmha", "attention", "paged_attn", "mha_"}},
      {KernelClass::kOptimizer,
       {"multi_tensor_apply", "adam", "fusedsgd", "lamb", "multitensorapply"}},
      {KernelClass::kLayout,
       {"nchwtonhwc", "nhwctonchw", "transpose", "permute", "catarraybatched", "cat_array",
        "reformat"}},
      {KernelClass::kConvolution,
       {"conv", "implicit_gemm", "winograd", "wgrad", "dgrad", "fprop", "cudnn_infer", "im2col"}},
      {KernelClass::kSoftmax, {"softmax"}},
      {KernelClass::kNormalization,
       {"layer_norm", "layernorm", "rmsnorm", "rms_norm", "batch_norm", "batchnorm", "bn_fw",
        "bn_bw", "group_norm", "groupnorm", "gammabeta"}},
      {KernelClass::kMatmul,
       {"gemm", "gemv", "cutlass", "nvjet", "cublas", "matmul", "splitk", "_mm_", "ampere_bf16",
        "wgmma"}},
      {KernelClass::kIndexing,
       {"index", "gather", "scatter", "embedding", "sort", "topk", "radix", "masked", "nonzero"}},
      {KernelClass::kReduction, {"reduce", "_sum", "_red_", "norm_kernel", "argmax", "cumsum"}},
      {KernelClass::kElementwise,
       {"elementwise", "pointwise", "triton_poi", "fill", "copy_kernel", "vectorized", "unrolled",
        "dropout", "gelu", "relu", "cast"}},
  };
  const std::string lower = Lower(name);
  for (const auto& [value, words] : kRows)
    if (HasAny(lower, words)) return value;
  return KernelClass::kOther;
}

bool CanUseTensorCores(KernelClass value) {
  return value == KernelClass::kMatmul || value == KernelClass::kConvolution ||
         value == KernelClass::kAttention;
}

bool UsesTensorCores(std::string_view name) {
  return HasAny(Lower(name), {"tensorop",  "1688",        "16816",  "i16832",  "s8816",    "h884",
                              "s884",      "hmma",        "imma",   "wgmma",   "gmma",     "xmma",
                              "nvjet",     "flash",       "fmha",   "_tf32",   "bf16_s",   "fp16_s",
                              "warpgroup", "tensor16x8x", "utcmma", "tcgen05", "triton_mm"});
}

bool IsLibraryKernel(std::string_view name) {
  return HasAny(Lower(name),
                {"cublas", "cudnn", "nvjet", "xmma", "ampere_", "volta_", "turing_", "maxwell_",
                 "hopper_", "sm80_", "sm90_", "sm86_", "sm100_", "nccl", "cask", "cutlass"});
}

bool IsDoublePrecision(std::string_view name) {
  return HasAny(Lower(name), {"dgemm", "d884", "double", "_f64", "dgemv"});
}

bool IsFormatConversion(std::string_view name) {
  return HasAny(Lower(name), {"nchwtonhwc", "nhwctonchw", "reformat"});
}

}  // namespace atunner::trace
