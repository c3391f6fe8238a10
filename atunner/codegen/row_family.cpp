// Rows: softmax and layernorm, forward and backward. The row is kept in registers or shared memory, or read again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/family.h"
#include "atunner/operators/operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// What distinguishes the operators: their text, arguments and what a thread must hold per column.
struct RowKernel {
  std::string_view name;
  std::string_view text;
  int kept_tensors;  ///< tensors that a second pass needs
  int extra_words;   ///< float32 registers per column beside the kept tensors
  bool parameter_gradients;
};

const RowKernel kKernels[] = {
    {"softmax", embed::kSoftmaxCu, 1, 0, false},
    {"softmax_backward", embed::kSoftmaxBackwardCu, 2, 0, false},
    {"layernorm", embed::kLayernormCu, 1, 0, false},
    {"layernorm_backward", embed::kLayernormBackwardCu, 2, 2, true},
};

const RowKernel* FindKernel(std::string_view name) {
  const auto at = std::ranges::find(kKernels, name, &RowKernel::name);
  return at == std::end(kKernels) ? nullptr : at;
}

/// Registers a thread may spend on kept elements: 255 less what addresses and reductions take.
constexpr int kMaxHeldWords = 128;

std::vector<Value> Integers(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

class RowTemplate : public ScheduleTemplate {
 public:
  RowTemplate(const RowKernel& kernel, const KernelSpec& spec, const DeviceProfile& profile)
      : kernel_(kernel), spec_(spec), profile_(profile) {
    cols_ = spec_.dims.at("cols");
    rows_ = spec_.dims.at("rows");
    element_ = static_cast<int64_t>(SizeOf(spec_.compute_dtype));
    MakeSpace();
  }

  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  std::optional<RenderedKernel> Naive() const override { return FindOperator(spec_.name)->Naive(spec_); }

  Configuration Default() const override {
    // Wide loads, a few of them in flight per thread, and no more threads per row than that leaves work for.
    int64_t vector = 16 / element_;
    while (cols_ % vector != 0) vector /= 2;
    // 128 bytes per thread of a tensor, shared among the tensors that are kept: measured best on an H200 for 4k to 16k
    // columns.
    const int64_t per_thread = kernel_.parameter_gradients ? 8 : 128 / element_;
    int64_t threads = 8;
    while (threads < 1024 && threads * std::max<int64_t>(vector, per_thread / kernel_.kept_tensors) < cols_)
      threads *= 2;
    const int64_t rows = std::max<int64_t>(1, 128 / threads);
    Configuration best;
    double least = INFINITY;
    // The nearest valid configuration, by logarithmic distance.
    for (int64_t t : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      for (int64_t r : {1, 2, 4, 8, 16, 32}) {
        for (const char* storage : {"registers", "shared", "reload"}) {
          for (int64_t cluster : {1, 2, 4, 8}) {
            const Configuration one = Assemble(t, r, vector, storage, cluster);
            if (!InSpace(one) || !space_.Allows(one, spec_.dims).value_or(false)) continue;
            const double kind = storage == std::string("registers") ? 0 : storage == std::string("shared") ? 1.5 : 6;
            const double distance = std::fabs(std::log2(static_cast<double>(t) / static_cast<double>(threads))) +
                                    std::fabs(std::log2(static_cast<double>(r) / static_cast<double>(rows))) + kind +
                                    std::log2(static_cast<double>(cluster));
            if (distance < least) {
              least = distance;
              best = one;
            }
          }
        }
      }
    }
    return best;
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const std::string storage = ToString(Get(space_, configuration, "storage"));
    const int64_t rows_per_block = integer("rows_per_block");
    const int64_t threads = integer("threads_per_row") * rows_per_block;
    const int64_t waves = integer("blocks_per_sm");
    const int64_t cluster = integer("cluster");
    RenderedKernel rendered;
    rendered.source.name = spec_.name + ".cu";
    rendered.source.text = fmt::format(
        "// {}: rows of {} {} elements, scheduled by atunner.\n// {}\n#include <cuda_bf16.h>\n#include "
        "<cuda_fp16.h>\n\n"
        "typedef {} T;\nconstexpr int COLS = {};\nconstexpr int THREADS_PER_ROW = {};\nconstexpr int ROWS_PER_BLOCK = "
        "{};\n"
        "constexpr int VEC = {};\n#define CLUSTER {}\nconstexpr bool PREFETCH = {};\nconstexpr int UNROLL = "
        "{};\nconstexpr bool STREAM = {};\nenum Storage {{ REGISTERS, SHARED, RELOAD }};\n"
        "constexpr Storage STORAGE = {};\n\n{}\n{}",
        spec_.name, cols_, Name(spec_.compute_dtype), space_.Describe(configuration), CudaName(spec_.compute_dtype),
        cols_, integer("threads_per_row"), rows_per_block, integer("vector"), cluster, integer("prefetch") != 0,
        storage == "registers" ? 1024 : integer("unroll"), integer("stream") ? "true" : "false",
        storage == "registers" ? "REGISTERS"
        : storage == "shared"  ? "SHARED"
                               : "RELOAD",
        embed::kRowCommonCuh, kernel_.text);
    LaunchStep step;
    step.entry = "kernel";
    const std::string groups = fmt::format("ceil_div(rows, {})", rows_per_block);
    const std::string blocks = waves == 0 ? fmt::format("min({}, {})", groups, 2147483647 / cluster)
                                          : fmt::format("min({}, {})", groups, waves * profile_.sms / cluster);
    step.grid[0] = Expr::MustParse(fmt::format("{} * {}", blocks, cluster));
    step.cluster[0] = Expr(cluster);
    step.block[0] = Expr(threads);
    if (storage == "shared")
      step.shared_bytes = Expr(rows_per_block * kernel_.kept_tensors * cols_ / cluster * element_);
    for (const ArgSpec& arg : spec_.args) {
      if (arg.name != "dweight" && arg.name != "dbias") step.args.push_back(ArgBinding::Tensor(arg.name));
    }
    if (kernel_.parameter_gradients) step.args.push_back(ArgBinding::Workspace("shares"));
    if (spec_.attributes.contains("eps"))
      step.args.push_back(ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("eps")));
    step.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")));
    rendered.plan.steps.push_back(step);
    if (kernel_.parameter_gradients) AddShares(rendered.plan, blocks, rows_per_block);
    rendered.plan.parameter_names = space_.Names();
    rendered.plan.parameter_values = configuration.values;
    return rendered;
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // Only the number of rows is free: enough to fill several blocks and leave the last one partly empty.
    const int64_t per_block = GetInt(space_, configuration, "rows_per_block");
    const int64_t few = std::clamp<int64_t>(200000 / cols_, 1, 2 * per_block + 1);
    std::vector<Dims> sizes;
    for (int64_t rows : {int64_t{1}, few}) {
      const Dims dims = {{"cols", cols_}, {"rows", std::min(rows, rows_)}};
      if (std::ranges::find(sizes, dims) == sizes.end()) sizes.push_back(dims);
    }
    return sizes;
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
    const bool reload = ToString(Get(space_, configuration, "storage")) == "reload";
    const double reads = reload ? 1.6 : 1.0;
    const auto vector = static_cast<double>(GetInt(space_, configuration, "vector") * element_);
    const auto threads = static_cast<double>(GetInt(space_, configuration, "threads_per_row"));
    const double per_thread = static_cast<double>(cols_) / threads;
    // Narrow loads, idle lanes and threads with a single load in flight all waste bandwidth.
    const double width = vector >= 16 ? 1.0 : vector >= 8 ? 1.05 : vector >= 4 ? 1.2 : 1.6;
    const double idle = std::ceil(per_thread / (vector / static_cast<double>(element_))) * vector /
                        static_cast<double>(element_) / per_thread;
    return bytes * reads * width * (0.5 + 0.5 * idle) / profile.dram_gbps;
  }

 private:
  void MakeSpace() {
    std::vector<Value> vectors;
    for (int64_t v = 1; v * element_ <= 16; v *= 2) {
      if (v * element_ >= 2 && cols_ % v == 0) vectors.emplace_back(v);
    }
    std::vector<Value> storages = {std::string("registers")};
    if (!kernel_.parameter_gradients) {
      storages.emplace_back(std::string("shared"));
      storages.emplace_back(std::string("reload"));
    }
    space_.parameters = {
        {"threads_per_row", Integers({8, 16, 32, 64, 128, 256, 512, 1024}), "threads that share one row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 16, 32}), "rows one block works on at once"},
        {"vector", vectors, "elements per load"},
        {"storage", storages, "where the row stays between the passes"},
        {"unroll", Integers({1, 2, 4, 8}), "loads in flight when the row is not kept in registers"},
        {"blocks_per_sm", kernel_.parameter_gradients ? Integers({1, 2, 3, 4}) : Integers({0, 2, 4, 8}),
         "0 = one block per row group, else a persistent grid"},
        {"stream", Integers({0, 1}), "evict-first loads and stores"},
        {"cluster", profile_.cc_major >= 9 ? Integers({1, 2, 4, 8}) : Integers({1}),
         "blocks that share one row through distributed shared memory"},
        {"prefetch", kernel_.parameter_gradients ? Integers({0, 1}) : Integers({0}),
         "load the next rows while these are reduced"},
    };
    const auto add = [&](const std::string& text, const char* reason) {
      space_.constraints.push_back({Expr::MustParse(text), reason});
    };
    add("threads_per_row * rows_per_block <= 1024", "a block has at most 1024 threads");
    add("threads_per_row * rows_per_block >= 32", "whole warps only");
    add(fmt::format("cluster == 1 or (rows_per_block == 1 and threads_per_row >= 128 and {0} >= 4096 and {0} % "
                    "(cluster * vector) == 0 and storage != 'reload')",
                    cols_),
        "clusters serve long rows");
    // One warp alone on a row is always allowed: a single short row needs some block of a whole warp.
    add(fmt::format("threads_per_row * vector * cluster < 2 * {} or threads_per_row == 8 or "
                    "(threads_per_row == 32 and rows_per_block == 1)",
                    cols_),
        "more threads than elements");
    const std::string held =
        fmt::format("(ceil_div({}, cluster * threads_per_row * vector) * vector * ({} + prefetch * {}) // 4)", cols_,
                    HeldBytes(), kernel_.kept_tensors * element_);
    add(fmt::format("storage != 'registers' or {} <= {}", held, kMaxHeldWords), "the row does not fit in registers");
    // Held words, addresses and temporaries of all threads share 65 536 registers.
    add(fmt::format("storage != 'registers' or ({} + 24) * threads_per_row * rows_per_block <= 65536", held),
        "the block does not fit in the register file");
    add(fmt::format("storage != 'shared' or rows_per_block * {} // cluster <= {}",
                    kernel_.kept_tensors * cols_ * element_, profile_.shared_per_block - 4096),
        "the rows do not fit in shared memory");
    add("storage != 'registers' or unroll == 4", "register storage unrolls fully");
    add(fmt::format("rows_per_block <= max(1, {})", rows_), "more rows than there are");
  }

  /// Bytes of registers that one column costs its thread: what was loaded, and float32 sums.
  int64_t HeldBytes() const { return kernel_.kept_tensors * element_ + 4 * kernel_.extra_words; }

  Configuration Assemble(int64_t threads, int64_t rows, int64_t vector, const std::string& storage,
                         int64_t cluster) const {
    return {{threads, rows, vector, storage, int64_t{4}, int64_t{kernel_.parameter_gradients ? 2 : 0}, int64_t{0},
             cluster, int64_t{0}}};
  }

  bool InSpace(const Configuration& one) const {
    for (size_t i = 0; i < one.values.size(); ++i) {
      if (std::ranges::find(space_.parameters[i].values, one.values[i]) == space_.parameters[i].values.end())
        return false;
    }
    return true;
  }

  void AddShares(LaunchPlan& plan, const std::string& grid, int64_t rows_per_block) const {
    plan.workspaces = {{"shares", Expr::MustParse(fmt::format("({}) * {} * 8 * {}", grid, rows_per_block, cols_))}};
    LaunchStep add;
    add.entry = "add_shares";
    add.grid[0] = Expr(static_cast<int64_t>((cols_ + 31) / 32));
    add.block[0] = 256;
    add.args = {ArgBinding::Workspace("shares"), ArgBinding::Tensor("dweight"), ArgBinding::Tensor("dbias"),
                ArgBinding::Scalar(DType::kInt32, Expr::MustParse(fmt::format("({}) * {}", grid, rows_per_block)))};
    plan.steps.push_back(add);
  }

  const RowKernel& kernel_;
  KernelSpec spec_;
  DeviceProfile profile_;
  ParameterSpace space_;
  int64_t cols_ = 1;
  int64_t rows_ = 1;
  int64_t element_ = 4;
};

class Rows : public Family {
 public:
  std::string_view name() const override { return "rows"; }
  bool Match(const KernelSpec& spec) const override {
    return spec.oracle.kind == Oracle::Kind::kOperator && FindKernel(spec.name) != nullptr;
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    auto bound = std::make_unique<RowTemplate>(*FindKernel(spec.name), spec, profile);
    if (bound->Default().values.empty()) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("rows of {} elements are too long for {}", spec.dims.at("cols"), spec.name));
    }
    return bound;
  }
};

}  // namespace

const Family& RowFamily() {
  static const Rows family;
  return family;
}

}  // namespace atunner
