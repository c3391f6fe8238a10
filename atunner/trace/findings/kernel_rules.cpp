// Rules about kernels.
#include <fmt/format.h>

#include <array>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/findings/measures.h"

namespace atunner::trace {
namespace {

std::string_view NameOf(const FindingInput& input, const KernelRow& row) {
  return Text(input, row.name);
}

/// "aten::softmax [[8192,4096]]" if the operator is known.
std::string CallerOf(const FindingInput& input, const KernelRow& row) {
  if (row.operator_name == 0) return "";
  return fmt::format(", launched by {} {}", Text(input, row.operator_name),
                     Text(input, row.operator_shapes));
}

std::optional<Finding> HotKernel(const FindingInput& input) {
  const KernelRow* row = LargestKernel(input, [&](const KernelRow& each) {
    return each.kernel_class != KernelClass::kCommunication &&
           !IsLibraryKernel(NameOf(input, each));
  });
  if (row == nullptr) return std::nullopt;
  const double share = static_cast<double>(row->total) / WindowOf(input);
  if (share < 0.15) return std::nullopt;
  return Finding{
      .title = "One kernel takes much of the time",
      .evidence = fmt::format("{}: {} of the time in {} launches of {} (median){}",
                              ShortName(NameOf(input, *row)), Percent(share), row->count,
                              Duration(static_cast<double>(row->median)), CallerOf(input, *row)),
      .gain = share / 2,
      .action =
          "hand it to atunner: `atunner capture -- PROGRAM`, then `atunner optimize CAPTURE "
          "--kernel NAME`; for an operator of PyTorch `atunner optimize --operator`",
      .kernel = std::string(NameOf(input, *row))};
}

std::optional<Finding> NoTensorCores(const FindingInput& input) {
  const auto eligible = [&](const KernelRow& row) {
    return CanUseTensorCores(row.kernel_class) && !row.tensor_cores &&
           !IsDoublePrecision(NameOf(input, row));
  };
  const double share = KernelShare(input, eligible);
  if (share < 0.05) return std::nullopt;
  const KernelRow* row = LargestKernel(input, eligible);
  return Finding{
      .title = "Matrix products do without tensor cores",
      .evidence = fmt::format("{} of the time in such kernels, most in {}{}", Percent(share),
                              ShortName(NameOf(input, *row)), CallerOf(input, *row)),
      .gain = share * 0.75,
      .action =
          "torch.set_float32_matmul_precision(\"high\") for TF32, autocast to bfloat16, and "
          "sizes that are multiples of 8",
      .kernel = std::string(NameOf(input, *row))};
}

std::optional<Finding> DoublePrecision(const FindingInput& input) {
  const double share = KernelShare(
      input, [&](const KernelRow& row) { return IsDoublePrecision(NameOf(input, row)); });
  if (share < 0.05) return std::nullopt;
  return Finding{
      .title = "Kernels compute in float64",
      .evidence = fmt::format("{} of the time in kernels of double precision", Percent(share)),
      .gain = share * 0.5,
      .action =
          "look for NumPy arrays (float64 by default) and torch.double; convert to "
          "float32 unless the method needs more"};
}

bool IsSmallMap(const KernelRow& row) {
  return row.kernel_class == KernelClass::kElementwise ||
         row.kernel_class == KernelClass::kReduction;
}

std::optional<Finding> Unfused(const FindingInput& input) {
  const double share = KernelShare(input, IsSmallMap);
  uint64_t count = 0;
  for (const KernelRow& row : input.analysis.tables.kernels)
    count += IsSmallMap(row) ? row.count : 0;
  if (share < 0.2 || count < 10) return std::nullopt;
  return Finding{
      .title = "Elementwise kernels and sums are not fused",
      .evidence = fmt::format("{} of the time in {} launches that each read and write memory again",
                              Percent(share), count),
      .gain = share / 2,
      .action =
          "torch.compile fuses chains of them; `atunner optimize model.pt2` partitions, fuses "
          "and tunes the model's graph"};
}

std::optional<Finding> FormatConversions(const FindingInput& input) {
  const double share = KernelShare(
      input, [&](const KernelRow& row) { return IsFormatConversion(NameOf(input, row)); });
  if (share < 0.03) return std::nullopt;
  return Finding{.title = "Images are converted between NCHW and NHWC",
                 .evidence = fmt::format("{} of the time in conversions", Percent(share)),
                 .gain = share,
                 .action =
                     "model.to(memory_format=torch.channels_last), inputs likewise; then no "
                     "kernel has to convert"};
}

std::optional<Finding> Layout(const FindingInput& input) {
  const auto is_layout = [&](const KernelRow& row) {
    return row.kernel_class == KernelClass::kLayout && !IsFormatConversion(NameOf(input, row));
  };
  const double share = KernelShare(input, is_layout);
  if (share < 0.05) return std::nullopt;
  const KernelRow* row = LargestKernel(input, is_layout);
  return Finding{.title = "Data is moved to change its layout",
                 .evidence = fmt::format("{} of the time in transposes and concatenations, most in "
                                         "{}{}",
                                         Percent(share), ShortName(NameOf(input, *row)),
                                         CallerOf(input, *row)),
                 .gain = share,
                 .action =
                     "leave out .contiguous() after transpose, write results of parts into "
                     "one tensor in place of torch.cat, let a kernel read the other layout"};
}

std::optional<Finding> UnfusedAttention(const FindingInput& input) {
  const auto is = [](KernelClass wanted) {
    return [wanted](const KernelRow& row) { return row.kernel_class == wanted; };
  };
  const double softmax = KernelShare(input, is(KernelClass::kSoftmax));
  const double matmul = KernelShare(input, is(KernelClass::kMatmul));
  const double attention = KernelShare(input, is(KernelClass::kAttention));
  if (softmax < 0.05 || matmul == 0 || attention > 0) return std::nullopt;
  return Finding{
      .title = "Attention is computed in separate kernels",
      .evidence = fmt::format("{} of the time in softmax between matrix products, and no fused "
                              "attention kernel",
                              Percent(softmax)),
      .gain = softmax,
      .action =
          "torch.nn.functional.scaled_dot_product_attention, or `atunner optimize --operator "
          "attention` for your shape"};
}

std::optional<Finding> UnfusedNormalization(const FindingInput& input) {
  const KernelRow* row = LargestKernel(input, [](const KernelRow& each) {
    return each.kernel_class == KernelClass::kNormalization;
  });
  const double share = KernelShare(input, [](const KernelRow& each) {
    return each.kernel_class == KernelClass::kNormalization;
  });
  if (row == nullptr || share < 0.1) return std::nullopt;
  return Finding{.title = "Normalisation takes a tenth of the time or more",
                 .evidence = fmt::format("{} of the time, most in {}{}", Percent(share),
                                         ShortName(NameOf(input, *row)), CallerOf(input, *row)),
                 .gain = share / 2,
                 .action =
                     "`atunner optimize --operator layernorm` or rms_norm for your shape; fuse the "
                     "residual addition into it",
                 .kernel = std::string(NameOf(input, *row))};
}

/// Blocks that the first device of the trace can run at once, at one block for each SM.
int Multiprocessors(const FindingInput& input) {
  const auto& devices = input.analysis.timeline->devices;
  return devices.empty() ? 0 : devices.front().multiprocessors;
}

std::optional<Finding> SmallGrid(const FindingInput& input) {
  const int sms = Multiprocessors(input);
  const auto small = [sms](const KernelRow& row) {
    return row.kernel_class != KernelClass::kCommunication && row.detail.blocks > 0 &&
           row.detail.blocks * 2 <= sms;
  };
  const KernelRow* row = LargestKernel(input, small);
  const double share = KernelShare(input, small);
  if (row == nullptr || share < 0.1) return std::nullopt;
  return Finding{
      .title = "Kernels leave most of the GPU empty",
      .evidence = fmt::format(
          "{} of the time in kernels with blocks for at most half of the {} SMs, "
          "most in {} with {} blocks{}",
          Percent(share), sms, ShortName(NameOf(input, *row)), row->detail.blocks,
          CallerOf(input, *row)),
      .gain = share / 2,
      .action =
          "split the reduction over more blocks (split-K, split over rows), enlarge the batch, "
          "or run independent kernels on several streams; `atunner optimize` searches splits",
      .kernel = std::string(NameOf(input, *row))};
}

std::optional<Finding> LowOccupancy(const FindingInput& input) {
  const auto low = [&](const KernelRow& row) {
    return row.detail.occupancy >= 0 && row.detail.occupancy < 0.15f && !row.tensor_cores &&
           row.kernel_class != KernelClass::kCommunication &&
           row.detail.blocks > Multiprocessors(input);
  };
  const KernelRow* row = LargestKernel(input, low);
  const double share = KernelShare(input, low);
  if (row == nullptr || share < 0.1) return std::nullopt;
  return Finding{
      .title = "Few warps are resident",
      .evidence = fmt::format("{} of the time in kernels with an occupancy below 15 %, most in {} "
                              "({} registers, {} bytes of shared memory)",
                              Percent(share), ShortName(NameOf(input, *row)), row->detail.registers,
                              row->detail.shared_bytes),
      .gain = share / 4,
      .action =
          "fewer registers (__launch_bounds__, -maxrregcount) or less shared memory for each "
          "block; `atunner optimize` searches both",
      .kernel = std::string(NameOf(input, *row))};
}

constexpr std::array kRules = {
    Rule{"hot_kernel", "a kernel outside of NVIDIA's libraries takes 15 % or more", HotKernel},
    Rule{"no_tensor_cores", "5 % or more in matrix products without tensor cores", NoTensorCores},
    Rule{"double_precision", "5 % or more in float64 kernels", DoublePrecision},
    Rule{"unfused_elementwise", "20 % or more in elementwise kernels and sums", Unfused},
    Rule{"format_conversion", "3 % or more in NCHW/NHWC conversions", FormatConversions},
    Rule{"layout_changes", "5 % or more in transposes and concatenations", Layout},
    Rule{"unfused_attention", "softmax beside matrix products, no attention kernel",
         UnfusedAttention},
    Rule{"normalization", "10 % or more in normalisation kernels", UnfusedNormalization},
    Rule{"small_grid", "10 % or more in kernels with blocks for half of the SMs", SmallGrid},
    Rule{"low_occupancy", "10 % or more in kernels with an occupancy below 15 %", LowOccupancy},
};

}  // namespace

std::span<const Rule> KernelRules() { return kRules; }

}  // namespace atunner::trace
