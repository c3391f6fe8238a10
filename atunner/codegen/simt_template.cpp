#include "atunner/codegen/simt_template.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner {
SimtTemplate::SimtTemplate(const KernelSpec& spec, const DeviceProfile& profile, Extents extents, bool b_transposed)
    : ProductTemplate(spec, profile, extents),
      b_transposed_(b_transposed),
      threads_(Expr::MustParse("(tile_m // thread_m) * (tile_n // thread_n)")),
      // Sums, the fragments that feed them, and what addresses take.
      registers_(Expr::MustParse("thread_m * thread_n + 4 * thread_m + 2 * thread_n + 32")),
      shared_(Expr::MustParse(fmt::format("(tile_m * (tile_k // 4 + 1) + {}) * 16 * stages",
                                          b_transposed ? "tile_n * (tile_k // 4 + 1)" : "tile_k * tile_n // 4"))) {
  space_.parameters = {
      {"tile_m", Integers({32, 64, 128, 256}), "rows of the result per block"},
      {"tile_n", Integers({32, 64, 128, 256}), "columns of the result per block"},
      {"tile_k", Integers({8, 16, 32}), "depth of one buffer"},
      {"thread_m", Integers({4, 8, 16}), "rows of the result per thread"},
      {"thread_n", Integers({4, 8, 16}), "columns of the result per thread"},
      {"stages", Integers({2, 3, 4}), "buffers in shared memory"},
  };
  const std::string threads = "(" + threads_.text() + ")", registers = "(" + registers_.text() + ")";
  Add("64 <= " + threads + " <= 512", "64 to 512 threads");
  AddShared(shared_.text());
  Add(registers + " <= 255", "registers of a thread");
  Add(registers + " * " + threads + " <= 65536", "registers of a block");
  Add(fmt::format("tile_m == 32 or tile_m < 2 * {}", extents.m), "more rows than there are");
  Add(fmt::format("tile_n == 32 or tile_n < 2 * {}", extents.n), "more columns than there are");
  AddOrderAndSplit();
}

std::vector<std::vector<int64_t>> SimtTemplate::Starts() const {
  // tile_m, tile_n, tile_k, thread_m, thread_n, stages
  return {{128, 128, 16, 8, 8, 3}, {128, 128, 8, 8, 8, 3}, {128, 64, 16, 8, 8, 3}, {64, 128, 16, 8, 8, 3},
          {64, 64, 16, 8, 4, 3},   {64, 64, 16, 4, 4, 3},  {32, 128, 16, 4, 8, 3}, {128, 32, 16, 8, 4, 3},
          {32, 64, 16, 4, 4, 3},   {32, 32, 32, 4, 4, 2}};
}

ConstantBlock SimtTemplate::TileConstants(const Configuration& configuration) const {
  ConstantBlock block;
  block.Line("typedef float T;").Define("SPLIT_K", Integer(configuration, "split_k"));
  block.Ints(chosen(configuration), {"tile_m", "tile_n", "tile_k", "thread_m", "thread_n", "stages", "group_m"});
  block.Bool("B_TRANSPOSED", b_transposed_);
  block.Bool("C_ALIGNED", extents_.n % 4 == 0, "rows of the result start at multiples of 16 bytes");
  return block;
}

std::optional<double> SimtTemplate::Cost(const Configuration& configuration, const DeviceProfile& profile) const {
  const int64_t warps = Threads(configuration) / 32;
  const int64_t thread_m = Integer(configuration, "thread_m");
  const int64_t thread_n = Integer(configuration, "thread_n");
  const int64_t registers = Evaluate(registers_, configuration);
  const int64_t resident = std::clamp<int64_t>(
      std::min({profile.shared_per_sm / (SharedBytes(configuration) + profile.shared_reserved_per_block),
                profile.registers_per_sm / (registers * warps * 32), BlocksPerSm(configuration)}),
      1, 8);
  // A thread tile of w × v reads w + v words of shared memory for w · v products.
  const double fed = Real(thread_m * thread_n) / Real(thread_m * thread_n + thread_m + thread_n);
  const double hidden = std::min(1.0, 0.5 + 0.5 * Real(warps * resident) / 8.0);
  Pace pace;
  pace.resident = resident;
  pace.flops = profile.PeakFlops(DType::kFloat32, false) / profile.sms * fed * hidden;
  return Time(configuration, pace);
}

}  // namespace atunner
