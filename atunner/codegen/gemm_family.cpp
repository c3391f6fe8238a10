// Matrix products: float16 and bfloat16 on tensor cores through mma.sync, float32 with fused multiply-adds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/family.h"
#include "atunner/operators/operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

std::vector<Value> Integers(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

/// What both kernels share: sizes at run time, alignment baked in, one block per tile of c.
class GemmTemplate : public ScheduleTemplate {
 public:
  GemmTemplate(const KernelSpec& spec, const DeviceProfile& profile) : spec_(spec), profile_(profile) {
    const int64_t unit = spec.compute_dtype == DType::kFloat32 ? 4 : 8;  // elements in 16 bytes
    aligned_ = spec.dims.at("K") % unit == 0 && spec.dims.at("N") % unit == 0;
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  std::optional<RenderedKernel> Naive() const override { return FindOperator(spec_.name)->Naive(spec_); }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // Partly filled tiles in all three directions, with the alignment the source was made for.
    const int64_t m = GetInt(space_, configuration, "tile_m");
    const int64_t n = GetInt(space_, configuration, "tile_n");
    const int64_t k = GetInt(space_, configuration, "tile_k");
    const int64_t odd = aligned_ ? 8 : 7;
    const Dims small = {{"M", 5}, {"N", odd}, {"K", odd}};
    const Dims edge = {{"M", m + 3}, {"N", n / 2 + odd}, {"K", 3 * k + odd}};
    return {small, edge};
  }

 protected:
  void Add(const std::string& text, const char* reason) {
    space_.constraints.push_back({Expr::MustParse(text), reason});
  }

  RenderedKernel Finish(const Configuration& configuration, std::string text, int64_t threads, int64_t shared) const {
    RenderedKernel rendered;
    rendered.source.name = spec_.name + ".cu";
    rendered.source.text = std::move(text);
    LaunchStep step;
    step.entry = "gemm";
    step.grid[0] = Expr::MustParse("ceil_div(M, tile_m) * ceil_div(N, tile_n)");
    step.block[0] = Expr(threads);
    step.shared_bytes = Expr(shared);
    step.args = {ArgBinding::Tensor("a"), ArgBinding::Tensor("b"), ArgBinding::Tensor("c")};
    for (const char* extent : {"M", "N", "K"})
      step.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse(extent)));
    rendered.plan.steps = {step};
    rendered.plan.parameter_names = space_.Names();
    rendered.plan.parameter_values = configuration.values;
    return rendered;
  }

  /// Of the given configurations the first that the space allows.
  Configuration FirstAllowed(const std::vector<std::vector<int64_t>>& candidates) const {
    for (const std::vector<int64_t>& values : candidates) {
      Configuration one{{values.begin(), values.end()}};
      if (space_.Allows(one, spec_.dims).value_or(false)) return one;
    }
    return {};
  }

  /// Rough time: whole tiles over the SMs, at the given rate in FLOP/s, with the last wave's idle SMs.
  double TileCost(int64_t tile_m, int64_t tile_n, double rate) const {
    const auto tiles = [](int64_t extent, int64_t tile) { return static_cast<double>((extent + tile - 1) / tile); };
    const double blocks = tiles(spec_.dims.at("M"), tile_m) * tiles(spec_.dims.at("N"), tile_n);
    const double waves = std::ceil(blocks / profile_.sms);
    const double flops = 2.0 * static_cast<double>(tile_m * tile_n) * static_cast<double>(spec_.dims.at("K"));
    return waves * flops / (rate / profile_.sms) * 1e9;
  }

  KernelSpec spec_;
  DeviceProfile profile_;
  ParameterSpace space_;
  bool aligned_ = false;
};

class TensorCoreGemm : public GemmTemplate {
 public:
  TensorCoreGemm(const KernelSpec& spec, const DeviceProfile& profile) : GemmTemplate(spec, profile) {
    space_.parameters = {
        {"tile_m", Integers({64, 128, 256}), "rows of c per block"},
        {"tile_n", Integers({64, 128, 256}), "columns of c per block"},
        {"tile_k", Integers({32, 64}), "depth of one buffer"},
        {"warp_m", Integers({32, 64, 128}), "rows of c per warp"},
        {"warp_n", Integers({32, 64, 128}), "columns of c per warp"},
        {"stages", Integers({2, 3, 4, 5}), "buffers in shared memory"},
        {"group_m", Integers({1, 4, 8, 16}), "tile rows that consecutive blocks go down"},
    };
    Add("tile_m % warp_m == 0 and tile_n % warp_n == 0", "warps divide the tile");
    Add("4 <= (tile_m // warp_m) * (tile_n // warp_n) <= 16", "4 to 16 warps");
    Add(fmt::format("(tile_m * tile_k + tile_k * tile_n) * 2 * stages <= {}", profile.shared_per_block),
        "shared memory");
    const std::string threads = "((tile_m // warp_m) * (tile_n // warp_n) * 32)";
    Add(threads + " // (tile_k // 8) <= tile_m and " + threads + " // (tile_n // 8) <= tile_k", "every thread copies whole rows' worth");
    // Accumulators and two sets of fragments of a thread, and all threads in one register file.
    Add("warp_m * warp_n // 32 + (warp_m + warp_n) // 2 <= 208", "registers of a thread");
    Add("(warp_m * warp_n // 32 + (warp_m + warp_n) // 2 + 40) * 32 * (tile_m // warp_m) * (tile_n // warp_n) <= 65536",
        "registers of a block");
  }

  Configuration Default() const override {
    const int64_t m = spec_.dims.at("M");
    if (m <= 64) return FirstAllowed({{64, 64, 64, 32, 32, 4, 8}, {64, 64, 32, 32, 32, 3, 8}});
    return FirstAllowed({{128, 256, 32, 64, 64, 4, 8},
                         {128, 128, 32, 64, 64, 4, 8},
                         {128, 128, 32, 64, 64, 3, 8},
                         {128, 128, 32, 64, 64, 2, 8},
                         {64, 64, 32, 32, 32, 2, 8}});
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const bool brain = spec_.compute_dtype == DType::kBFloat16;
    const int64_t threads = integer("tile_m") / integer("warp_m") * (integer("tile_n") / integer("warp_n")) * 32;
    const int64_t shared = (integer("tile_m") + integer("tile_n")) * integer("tile_k") * 2 * integer("stages");
    return Finish(
        configuration,
        fmt::format("// matmul in {} on tensor cores, scheduled by atunner.\n// {}\n#include <cuda_bf16.h>\n#include "
                    "<cuda_fp16.h>\n\ntypedef {} T;\n#define MMA_TYPE \"{}\"\n"
                    "constexpr int TILE_M = {};\nconstexpr int TILE_N = {};\nconstexpr int TILE_K = {};\nconstexpr int "
                    "WARP_M = {};\nconstexpr int WARP_N = {};\n"
                    "constexpr int STAGES = {};\nconstexpr int GROUP_M = {};\nconstexpr bool ALIGNED = {};  // rows of "
                    "a, b and c start at multiples of 16 bytes\n\n{}",
                    Name(spec_.compute_dtype), space_.Describe(configuration), CudaName(spec_.compute_dtype),
                    brain ? "bf16" : "f16", integer("tile_m"), integer("tile_n"), integer("tile_k"), integer("warp_m"),
                    integer("warp_n"), integer("stages"), integer("group_m"), aligned_, embed::kGemmMmaCu),
        threads, shared);
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    // A warp tile of w × v reads (w + v) elements of shared memory per w·v products: small ones starve the tensor
    // cores.
    const auto w = static_cast<double>(integer("warp_m"));
    const auto v = static_cast<double>(integer("warp_n"));
    const double fed = std::min(1.0, w * v / (w + v) / 32.0);
    const double rate = profile.PeakFlops(spec_.compute_dtype, true) * profile.mma_sync_share * (0.4 + 0.6 * fed);
    return TileCost(integer("tile_m"), integer("tile_n"), rate);
  }
};

class SimtGemm : public GemmTemplate {
 public:
  SimtGemm(const KernelSpec& spec, const DeviceProfile& profile) : GemmTemplate(spec, profile) {
    space_.parameters = {
        {"tile_m", Integers({32, 64, 128, 256}), "rows of c per block"},
        {"tile_n", Integers({32, 64, 128, 256}), "columns of c per block"},
        {"tile_k", Integers({8, 16, 32}), "depth of one buffer"},
        {"thread_m", Integers({4, 8, 16}), "rows of c per thread"},
        {"thread_n", Integers({4, 8, 16}), "columns of c per thread"},
        {"group_m", Integers({1, 4, 8, 16}), "tile rows that consecutive blocks go down"},
    };
    const std::string threads = "((tile_m // thread_m) * (tile_n // thread_n))";
    Add("64 <= " + threads + " <= 512", "64 to 512 threads");
    Add("(tile_m * tile_k // 4) % " + threads + " == 0 and (tile_k * tile_n // 4) % " + threads + " == 0",
        "every thread loads whole vectors");
    Add("(tile_k * (tile_m + 4) + tile_k * tile_n) * 8 <= 49152", "static shared memory");
    Add("thread_m * thread_n <= 128", "registers of a thread");
    Add("(thread_m * thread_n + 64) * " + threads + " <= 65536", "registers of a block");
  }

  Configuration Default() const override {
    if (spec_.dims.at("M") <= 32) return FirstAllowed({{32, 64, 16, 4, 4, 8}, {32, 64, 8, 4, 4, 8}});
    return FirstAllowed({{128, 128, 16, 8, 8, 8}, {64, 64, 16, 4, 4, 8}});
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    return Finish(
        configuration,
        fmt::format("// matmul in float32, scheduled by atunner.\n// {}\nconstexpr int TILE_M = {};\nconstexpr int "
                    "TILE_N = {};\nconstexpr int TILE_K = {};\nconstexpr int THREAD_M = {};\n"
                    "constexpr int THREAD_N = {};\nconstexpr int GROUP_M = {};\nconstexpr bool ALIGNED = {};  // rows "
                    "of a, b and c start at multiples of 16 bytes\n\n{}",
                    space_.Describe(configuration), integer("tile_m"), integer("tile_n"), integer("tile_k"),
                    integer("thread_m"), integer("thread_n"), integer("group_m"), aligned_, embed::kGemmSimtCu),
        integer("tile_m") / integer("thread_m") * (integer("tile_n") / integer("thread_n")), 0);
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const auto area = static_cast<double>(integer("thread_m") * integer("thread_n"));
    const double fed = area / (area + 4.0 * static_cast<double>(integer("thread_m") + integer("thread_n")) / 4.0);
    return TileCost(integer("tile_m"), integer("tile_n"), profile.PeakFlops(DType::kFloat32, false) * fed);
  }
};

class Gemm : public Family {
 public:
  std::string_view name() const override { return "gemm"; }
  bool Match(const KernelSpec& spec) const override {
    return spec.oracle.kind == Oracle::Kind::kOperator && spec.name == "matmul";
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    // mma.sync with bfloat16 and asynchronous copies need compute capability 8.0.
    if (spec.compute_dtype != DType::kFloat32 && profile.cc_major < 8) {
      return Fail(ErrorCode::kUnsupported, "matmul in " + std::string(Name(spec.compute_dtype)) +
                                               " needs compute capability 8.0 or later, " + profile.name + " has less");
    }
    if (spec.compute_dtype == DType::kFloat32) return std::make_unique<SimtGemm>(spec, profile);
    return std::make_unique<TensorCoreGemm>(spec, profile);
  }
};

}  // namespace

const Family& GemmFamily() {
  static const Gemm family;
  return family;
}

}  // namespace atunner
