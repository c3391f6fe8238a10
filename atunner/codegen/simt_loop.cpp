#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/main_loop.h"
#include "embed/families.h"

namespace atunner {
namespace {

class Simt : public MainLoop {
 public:
  explicit Simt(bool b_transposed) : b_transposed_(b_transposed) {}
  bool OnTensorCores() const override { return false; }

  std::vector<Parameter> Parameters() const override {
    return {
        {"tile_m", Integers({32, 64, 128, 256}), "rows of the result per block"},
        {"tile_n", Integers({32, 64, 128, 256}), "columns of the result per block"},
        {"tile_k", Integers({8, 16, 32}), "depth of one buffer"},
        {"thread_m", Integers({4, 8, 16}), "rows of the result per thread"},
        {"thread_n", Integers({4, 8, 16}), "columns of the result per thread"},
        {"stages", Integers({2, 3, 4}), "buffers in shared memory"},
    };
  }
  std::vector<Constraint> Constraints() const override {
    return {{Expr::MustParse("2 <= " + Warps() + " <= 16"), "64 to 512 threads"}};
  }
  std::vector<std::vector<int64_t>> Starts() const override {
    return {{128, 128, 16, 8, 8, 3}, {128, 128, 8, 8, 8, 3}, {128, 64, 16, 8, 8, 3}, {64, 128, 16, 8, 8, 3},
            {64, 64, 16, 8, 4, 3},   {64, 64, 16, 4, 4, 3},  {32, 128, 16, 4, 8, 3}, {128, 32, 16, 8, 4, 3},
            {32, 64, 16, 4, 4, 3},   {32, 32, 32, 4, 4, 2}};
  }
  std::string Warps() const override { return "((tile_m // thread_m) * (tile_n // thread_n) // 32)"; }
  /// Sums, the fragments that feed them, and what addresses take.
  std::string Registers() const override { return "(thread_m * thread_n + 4 * thread_m + 2 * thread_n + 32)"; }
  std::string SharedBytes() const override {
    return fmt::format("(tile_m * (tile_k // 4 + 1) + {}) * 16 * stages",
                       b_transposed_ ? "tile_n * (tile_k // 4 + 1)" : "tile_k * tile_n // 4");
  }
  double Efficiency(const Chosen& chosen, int64_t resident, const DeviceProfile&) const override {
    // A thread tile of w × v reads w + v words of shared memory for w · v products.
    const int64_t thread_m = chosen["thread_m"], thread_n = chosen["thread_n"];
    const int64_t warps = chosen["tile_m"] / thread_m * (chosen["tile_n"] / thread_n) / 32;
    const double fed = Real(thread_m * thread_n) / Real(thread_m * thread_n + thread_m + thread_n);
    return fed * std::min(1.0, 0.5 + 0.5 * Real(warps * resident) / 8.0);
  }

  void AddConstants(const Chosen& chosen, ConstantBlock& constants) const override {
    constants.Ints(chosen, {"tile_k", "thread_m", "thread_n"});
  }
  std::string Text(const Chosen&) const override {
    return fmt::format("{}\n{}", embed::kSimtTileCuh, embed::kTileWalkersCuh);
  }

 private:
  bool b_transposed_;
};

}  // namespace

const MainLoop& SimtLoop(bool b_transposed) {
  static const Simt loops[] = {Simt(false), Simt(true)};
  return loops[b_transposed ? 1 : 0];
}

}  // namespace atunner
