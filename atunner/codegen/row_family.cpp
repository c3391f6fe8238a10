// Rows: softmax and layernorm, forward and backward. A row stays in registers or shared memory between the passes over
// it, or is read again; one block serves several rows, or several blocks one row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// What distinguishes the operators.
struct RowKernel {
  std::string_view name;
  std::string_view text;
  int64_t tensors;       ///< that are read row by row
  int64_t parameters;    ///< values per column: weight, bias
  int64_t part_bytes;    ///< what one part of a split row leaves for the second kernel
  int64_t instructions;  ///< per element of a row in 16 bits, about
  bool gradients;        ///< of the parameters: sums over each column
};

const RowKernel kKernels[] = {
    {"softmax", embed::kSoftmaxCu, 1, 0, 8, 14, false},
    {"softmax_backward", embed::kSoftmaxBackwardCu, 2, 0, 4, 10, false},
    {"layernorm", embed::kLayernormCu, 1, 2, 8, 13, false},
    {"layernorm_backward", embed::kLayernormBackwardCu, 2, 1, 16, 24, true},
};

const RowKernel* FindKernel(std::string_view name) {
  const auto at = std::ranges::find(kKernels, name, &RowKernel::name);
  return at == std::end(kKernels) ? nullptr : at;
}

/// Registers that addresses, reductions and temporaries take beside the kept elements.
constexpr int64_t kOtherRegisters = 32;
constexpr int64_t kAddGroups = 8;         // shares of column sums that one block adds at a time
constexpr int64_t kColumnRowBlocks = 64;  // blocks that share the rows in the pass over columns

class RowTemplate : public BoundTemplate {
 public:
  RowTemplate(const RowKernel& kernel, const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        kernel_(kernel),
        cols_(dim("cols")),
        rows_(dim("rows")),
        element_(static_cast<int64_t>(SizeOf(spec.compute_dtype))) {
    MakeSpace();
  }

  Configuration Default() const override {
    Configuration best;
    double least = INFINITY;
    const auto consider = [&](const Configuration& one) {
      if (!InSpace(one)) return;
      const double cost = Estimate(one);
      if (cost >= least || !Allows(one)) return;  // the dearer question last
      least = cost;
      best = one;
    };
    for (int64_t threads : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      for (int64_t rows : {1, 2, 4, 8, 16, 32}) {
        if (threads * rows < 32 || threads * rows > 1024) continue;
        for (const char* storage : {"registers", "shared", "reload"}) {
          for (int64_t cluster : {1, 2, 4, 8, 16}) ForEachWay(threads, rows, storage, cluster, consider);
        }
      }
    }
    return best;
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Choice choice = Read(configuration);
    ConstantBlock constants;
    if (!half_precision()) constants.Line("typedef float T;");
    constants.Line("enum Storage { REGISTERS, SHARED, RELOAD };");
    constants.Line(fmt::format("constexpr Storage STORAGE = {};", choice.storage == "registers" ? "REGISTERS"
                                                                  : choice.storage == "shared"  ? "SHARED"
                                                                                                : "RELOAD"));
    constants.Line("enum Keep { NOWHERE, IN_SHARED, IN_REGISTERS };");
    constants.Line(fmt::format("constexpr Keep KEEP = {};  // values per column", choice.keep == 0   ? "NOWHERE"
                                                                                  : choice.keep == 1 ? "IN_SHARED"
                                                                                                     : "IN_REGISTERS"));
    constants.Int("COLS", cols_)
        .Int("THREADS_PER_ROW", choice.threads)
        .Int("ROWS_PER_BLOCK", choice.rows)
        .Int("VEC", choice.vector, "elements per load")
        .Int("UNROLL", choice.unroll)
        .Int("TENSORS", kernel_.tensors, "read row by row")
        .Int("PARAMETERS", kernel_.parameters, "values per column")
        .Int("SHARED_SUMS", choice.shared_sums, "chunks whose column sums lie in shared memory")
        .Int("ADD_GROUPS", kAddGroups)
        .Bool("STREAM", choice.stream, "evict-first loads and stores")
        .Bool("PREFETCH", choice.prefetch > 0, "the next rows are copied meanwhile")
        .Bool("DEFER", choice.prefetch == 2, "rows are written after the next ones have been measured")
        .Define("CLUSTER", choice.cluster)
        .Define("SPLIT", choice.split)
        .Define("FUSED", choice.fused ? 1 : 0)
        .Line(kernel_.name == "softmax" ? "#define NEUTRAL MINUS_INFINITY" : "#define NEUTRAL 0.0f");
    LaunchPlan plan = Plan(configuration, {});
    if (choice.split > 1) {
      AddSplit(configuration, choice, plan);
    } else {
      LaunchStep step = RowStep("kernel", configuration, choice);
      AddArguments(step, choice, false);
      plan.steps.push_back(std::move(step));
    }
    if (kernel_.gradients) AddGradients(choice, plan);
    return RenderedKernel{
        Emit(configuration, constants,
             {embed::kRowCommonCuh, kernel_.parameters > 0 ? embed::kRowMomentsCuh : std::string_view(), kernel_.text}),
        std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // Only the number of rows is free: enough to fill several blocks and leave the last one partly empty.
    const int64_t per_block = Read(configuration).rows;
    const int64_t few = std::clamp<int64_t>(200000 / cols_, 1, 2 * per_block + 1);
    std::vector<Dims> sizes;
    for (int64_t rows : {int64_t{1}, few}) {
      const Dims dims = {{"cols", cols_}, {"rows", std::min(rows, rows_)}};
      if (std::ranges::find(sizes, dims) == sizes.end()) sizes.push_back(dims);
    }
    return sizes;
  }

  SizeFreedom FreeSizes(const Configuration&) const override { return {{"rows"}, {}}; }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile&) const override {
    return Estimate(configuration);
  }

 private:
  /// The ways to schedule blocks of one shape that are worth starting from. Column sums want a block that goes on, with
  /// the next rows under way and the parameters at hand.
  template <class Consider>
  void ForEachWay(int64_t threads, int64_t rows, const char* storage, int64_t cluster, const Consider& consider) const {
    // Column sums leave few registers for wide vectors of short elements.
    const int64_t vector = std::min<int64_t>(kernel_.gradients ? 4 : 16 / element_, LargestVector());
    const auto assemble = [&](int64_t blocks, int64_t prefetch, int64_t keep, int64_t fused, int64_t sums) {
      consider({{threads, rows, vector, cluster, int64_t{1}, std::string(storage), fused, sums, prefetch, keep, blocks,
                 int64_t{storage == std::string("registers") ? 4 : 8}, int64_t{0}}});
    };
    const std::vector<int64_t> sums = kernel_.gradients ? std::vector<int64_t>{0, 1, 2, 4, 8} : std::vector<int64_t>{0};
    for (int64_t shared_sums : sums) {
      for (int64_t blocks : {1, 2, 3}) {
        for (int64_t prefetch : {0, 1, 2}) {
          for (int64_t keep : {0, 1, 2}) assemble(blocks, prefetch, keep, kernel_.gradients ? 1 : 0, shared_sums);
        }
      }
    }
    assemble(0, 0, 0, 0, 0);
    if (kernel_.parameters > 0) assemble(8, 0, 1, 0, 0);
  }

  struct Choice {
    int64_t threads, rows, vector;
    std::string storage;
    int64_t unroll, blocks_per_sm, cluster, split, shared_sums, prefetch, keep;
    bool stream, fused;
    /// Buffers for rows in shared memory.
    int64_t copies() const { return (storage == "shared" ? 1 : 0) + prefetch; }
    int64_t block() const { return threads * rows; }
    int64_t parts() const { return cluster * split; }
  };

  Choice Read(const Configuration& configuration) const {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    return {.threads = integer("threads_per_row"),
            .rows = integer("rows_per_block"),
            .vector = integer("vector"),
            .storage = ToString(Get(space_, configuration, "storage")),
            .unroll = integer("unroll"),
            .blocks_per_sm = integer("blocks_per_sm"),
            .cluster = integer("cluster"),
            .split = integer("split"),
            .shared_sums = integer("shared_sums"),
            .prefetch = integer("prefetch"),
            .keep = integer("keep"),
            .stream = integer("stream") != 0,
            .fused = integer("fused") != 0};
  }

  /// Registers of one column's elements, in bytes. Exponentials are held in float32.
  int64_t HeldBytes() const { return kernel_.name == "softmax" ? 4 : kernel_.tensors * element_; }

  int64_t LargestVector() const {
    int64_t vector = 16 / element_;
    while (vector > 1 && vector > cols_) vector /= 2;
    return vector;
  }

  // --- space ---

  void MakeSpace() {
    std::vector<Value> vectors;
    for (int64_t v = 1; v <= LargestVector(); v *= 2) vectors.emplace_back(v);
    const bool affine = kernel_.parameters > 0;
    // What constraints ask for early stands early: the space is enumerated in this order.
    space_.parameters = {
        {"threads_per_row", Integers({8, 16, 32, 64, 128, 256, 512, 1024}), "threads that share one row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 16, 32}), "rows one block works on at once"},
        {"vector", vectors, "elements per load"},
        {"cluster", profile_.cc_major >= 9 ? Integers({1, 2, 4, 8, 16}) : Integers({1}),
         "blocks that share one row through distributed shared memory"},
        {"split", Integers({1, 4, 16, 64}), "blocks that share one row, in two kernels"},
        {"storage",
         {std::string("registers"), std::string("shared"), std::string("reload")},
         "where the row stays between the passes"},
        {"fused", kernel_.gradients ? Integers({1, 0}) : Integers({0}),
         "column sums in the pass that gives dx, or in a pass of their own"},
        {"shared_sums", kernel_.gradients ? Integers({0, 1, 2, 4, 8}) : Integers({0}),
         "chunks whose column sums lie in shared memory"},
        {"prefetch", profile_.cc_major >= 8 ? Integers({0, 1, 2}) : Integers({0}),
         "copy the next rows to shared memory while these are reduced; 2 = and the rows before are written"},
        {"keep", affine ? Integers({0, 1, 2}) : Integers({0}),
         "keep the values per column: 0 = nowhere, 1 = in shared memory, 2 = in registers"},
        {"blocks_per_sm", Integers({0, 1, 2, 3, 4, 8}), "0 = one block per row group, else a persistent grid"},
        {"unroll", Integers({1, 2, 4, 8}), "loads in flight when the row is not kept in registers"},
        {"stream", Integers({0, 1}), "evict-first loads and stores"},
    };
    Add("threads_per_row * rows_per_block <= 1024", "a block has at most 1024 threads");
    Add("threads_per_row * rows_per_block >= 32", "whole warps only");
    Add(fmt::format("rows_per_block <= max(1, {})", rows_), "more rows than there are");
    Add(fmt::format("cluster == 1 or (rows_per_block == 1 and threads_per_row >= 128 and {} >= 4096)", cols_),
        "clusters serve long rows");
    Add(fmt::format("split == 1 or (cluster == 1 and rows_per_block == 1 and threads_per_row >= 128 and {} >= split * "
                    "threads_per_row * vector)",
                    cols_),
        "splitting serves long rows");
    Add("split == 1 or storage == 'reload'", "a split row is read twice");
    Add("split == 1 or fused == 0", "column sums need whole rows");
    Add("split == 1 or prefetch == 0", "a split row is read twice");
    // One warp alone on a row is always allowed: a single short row needs some block of a whole warp.
    Add(fmt::format("threads_per_row * vector * cluster < 2 * {} or threads_per_row == 8 or "
                    "(threads_per_row == 32 and rows_per_block == 1)",
                    cols_),
        "more threads than elements");
    Add("storage != 'registers' or unroll == 4", "register storage unrolls fully");
    Add("prefetch == 0 or storage != 'reload'", "what is read again is not copied");
    Add("prefetch < 2 or storage == 'shared'", "rows in registers make room before the next ones come");
    Add("keep < 2 or blocks_per_sm > 0", "values in registers serve a block that goes on");
    Add(fmt::format("prefetch == 0 or (vector * {} >= 4 and {} % vector == 0 and blocks_per_sm > 0)", element_, cols_),
        "asynchronous copies take 4, 8 or 16 aligned bytes, and serve blocks with more than one group");
    Add(fmt::format("(fused == 0 and keep == 0) or {} % vector == 0", cols_),
        "where rows begin inside of vectors, no thread keeps to its columns");
    Add("fused == 0 or storage != 'reload'", "column sums go with a row that is kept");
    Add("fused == 0 or blocks_per_sm > 0", "column sums need a block that goes on");
    const std::string chunks = fmt::format("ceil_div({}, cluster * split * threads_per_row)", VectorsText());
    Add(fmt::format("shared_sums == 0 or (fused == 1 and shared_sums <= {})", chunks), "more chunks than there are");
    const std::string registers = fmt::format(
        "((storage == 'registers') * {0} * vector * {1} // 4 + (keep == 2) * {0} * vector * {3} // 4 + fused * max(0, "
        "{0} "
        "- shared_sums) * vector * 2 + {2} + 8 * vector // 4)",
        chunks, HeldBytes(), kOtherRegisters, kernel_.parameters * element_);
    Add(fmt::format("{} <= 255", registers), "the row does not fit in registers");
    Add(fmt::format("{} * threads_per_row * rows_per_block * max(1, fused * blocks_per_sm) <= 65536", registers),
        "the blocks do not fit in the register file");
    Add(fmt::format("fused == 0 or {} * vector * rows_per_block <= 512", chunks),
        "column sums of many rows are added by code that takes long to compile");
    Add(fmt::format("({}) * max(1, fused * blocks_per_sm) <= {}", SharedText(), profile_.shared_per_block - 8192),
        "shared memory");
  }

  /// Vectors that a row touches, at most, over the parameters.
  std::string VectorsText() const {
    return fmt::format("ceil_div({0} + ({0} % vector != 0) * (vector - 1), vector)", cols_);
  }

  /// Dynamic shared memory of a block over the parameters, as row_common.cuh and ColumnSums lay it out.
  std::string SharedText() const {
    const std::string per_thread =
        fmt::format("ceil_div(ceil_div({}, cluster * split), threads_per_row)", VectorsText());
    return fmt::format(
        "threads_per_row * rows_per_block * vector * ((((storage == 'shared') + prefetch) * {0} + (keep == 1) * {1}) * "
        "{2} * "
        "{3} + shared_sums * 8)",
        kernel_.tensors, kernel_.parameters, per_thread, element_);
  }

  int64_t SharedBytes(const Configuration& configuration) const {
    const std::vector<std::string> names = space_.Names();
    Bindings bindings;
    bindings.Add(names, configuration.values);
    return Expr::MustParse(SharedText()).EvaluateInt(bindings).value();
  }

  bool InSpace(const Configuration& one) const {
    for (size_t i = 0; i < one.values.size(); ++i) {
      if (std::ranges::find(space_.parameters[i].values, one.values[i]) == space_.parameters[i].values.end())
        return false;
    }
    return true;
  }

  /// Blocks that an SM holds, from registers, shared memory and threads.
  double Resident(const Choice& choice) const {
    const int64_t per_thread = (cols_ + choice.threads * choice.parts() - 1) / (choice.threads * choice.parts());
    const int64_t tensor_bytes = per_thread * element_ * kernel_.tensors;
    const int64_t sums = choice.fused ? 8 * std::max<int64_t>(0, per_thread - choice.shared_sums * choice.vector) : 0;
    const int64_t held = choice.storage == "registers" ? per_thread * HeldBytes() : 0;
    const int64_t affine = choice.keep == 2 ? kernel_.parameters * per_thread * element_ : 0;
    const int64_t registers = (held + sums + affine) / 4 + kOtherRegisters;
    const int64_t shared = choice.block() * (choice.copies() * tensor_bytes +
                                             (choice.keep == 1 ? kernel_.parameters * per_thread * element_ : 0) +
                                             8 * choice.shared_sums * choice.vector) +
                           2048;
    const int64_t most = std::min({int64_t{65536} / (registers * choice.block()), profile_.shared_per_sm / shared,
                                   int64_t{2048} / choice.block()});
    return static_cast<double>(
        std::max<int64_t>(1, choice.blocks_per_sm > 0 ? std::min(most, choice.blocks_per_sm) : most));
  }

  /// How much longer than `work`, the ns that a group's traffic takes at the SM's share of bandwidth, a group takes. An
  /// SM has the traffic and the instructions of all its blocks; a block goes through its turn in sequence, but for what
  /// it prefetches and defers. The constants fit rows of 65 536 and 262 144 elements on an H200.
  double Stretch(const Choice& choice, double work) const {
    const double blocks = Resident(choice);
    const double lanes_per_ns = 0.75 * 128.0 * profile_.clock_ghz;
    const double instructions = static_cast<double>(cols_ * choice.rows * kernel_.instructions) /
                                static_cast<double>(choice.parts()) / lanes_per_ns;
    const double chain = 300 + 100 * std::log2(static_cast<double>(choice.block())) + (choice.cluster > 1 ? 900 : 0);
    const double alone = instructions + (choice.prefetch == 2 && choice.cluster > 1 ? 0.2 : 1.0) * chain +
                         (choice.prefetch == 0 ? 800 + work : 0);
    const double longest = std::max({work * blocks, instructions * blocks, alone});
    const auto share = [&](double part) { return std::pow(part / longest, 4); };
    return longest * std::pow(share(work * blocks) + share(instructions * blocks) + share(alone), 0.25) /
           (work * blocks);
  }

  /// A rough time in ns: traffic, what wastes bandwidth, and how much of a block's pauses other blocks fill.
  double Estimate(const Configuration& configuration) const {
    const Choice choice = Read(configuration);
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
    const auto tensors = static_cast<double>(kernel_.tensors);
    double passes = tensors + 1;
    // What is read again comes from L2 where the rows in flight fit, at a price.
    const auto row_bytes = static_cast<double>(cols_ * element_);
    const double in_flight = row_bytes * tensors * profile_.sms * Resident(choice) * static_cast<double>(choice.rows) /
                             static_cast<double>(choice.parts());
    const bool cached = choice.split == 1 && in_flight < 0.7 * static_cast<double>(profile_.l2_bytes);
    if (choice.storage == "reload") passes += tensors * (cached ? 0.7 : 1.0);
    if (kernel_.gradients && !choice.fused) passes += tensors;
    // Parameters that every row reads again come from L2 where shared memory leaves L1 little room.
    const double again = row_bytes > 65536 ? 1.0 : kernel_.gradients ? 0.25 : 0.0;
    if (choice.keep == 0) passes += again * (kernel_.gradients ? 1.0 : 0.5) * static_cast<double>(kernel_.parameters);
    const auto width = static_cast<double>(choice.vector * element_);
    const double half = kernel_.gradients ? 0.97 : 1.02;  // column sums leave few registers for wide vectors
    const double narrow = width >= 16 ? 1.0 : width >= 8 ? half : width >= 4 ? 1.1 : 1.6;
    const auto per_thread = static_cast<double>(cols_) / static_cast<double>(choice.threads * choice.parts());
    const double idle =
        std::ceil(per_thread / static_cast<double>(choice.vector)) * static_cast<double>(choice.vector) / per_thread;
    const double work = row_bytes * (tensors + 1) * static_cast<double>(choice.rows) /
                        static_cast<double>(choice.parts()) * static_cast<double>(ClusterSms(choice.cluster)) /
                        profile_.dram_gbps;
    // About 128 bytes per thread, shared among the tensors, measured best on an H200 from 4k to 64k columns.
    const double off = std::fabs(std::log2(per_thread * static_cast<double>(element_) * tensors / 128.0));
    const double lean = 1 + 0.03 * off + 0.002 * static_cast<double>(choice.shared_sums) +
                        0.01 * std::log2(static_cast<double>(choice.cluster)) +
                        (choice.storage == "shared" ? 0.02 : 0.0) + (choice.keep == 1 ? 0.05 : 0.0);
    return bytes * passes / (tensors + 1) * narrow * (0.5 + 0.5 * idle) * Stretch(choice, work) * lean /
           profile_.dram_gbps;
  }

  // --- launch ---

  /// SMs on which clusters find room side by side. GPCs are of different sizes: an H200's 132 SMs hold 66 clusters of
  /// 2, 30 of 4, 15 of 8 and 7 of 16 at one block per SM (cuOccupancyMaxActiveClusters). A persistent grid must not be
  /// larger.
  int64_t ClusterSms(int64_t cluster) const {
    return cluster <= 2 ? profile_.sms : profile_.sms * (cluster <= 8 ? 120 : 112) / 132;
  }

  std::string Groups(const Choice& choice) const {
    const std::string groups = fmt::format("ceil_div(rows, {})", choice.rows);
    const int64_t most = choice.blocks_per_sm == 0
                             ? INT32_MAX / choice.parts()
                             : std::max<int64_t>(1, choice.blocks_per_sm * ClusterSms(choice.cluster) / choice.parts());
    return fmt::format("min({}, {})", groups, most);
  }

  LaunchStep RowStep(const char* entry, const Configuration& configuration, const Choice& choice) const {
    LaunchStep step;
    step.entry = entry;
    step.grid[0] = Expr::MustParse(fmt::format("{} * {}", Groups(choice), choice.parts()));
    step.block[0] = Expr(choice.block());
    step.cluster[0] = Expr(choice.cluster);
    step.shared_bytes = Expr(SharedBytes(configuration));
    return step;
  }

  void AddTensors(LaunchStep& step, bool outputs) const {
    for (const ArgSpec& arg : spec_.args) {
      const bool gradient = arg.name == "dweight" || arg.name == "dbias";
      if (arg.role == Role::kScalar || gradient || (arg.role == Role::kOutput) != outputs) continue;
      step.args.push_back(ArgBinding::Tensor(arg.name));
    }
  }

  bool KeepsStatistics(const Choice& choice) const { return kernel_.gradients && !choice.fused; }

  /// Inputs, statistics, the output, and what the kernel hands on.
  void AddArguments(LaunchStep& step, const Choice& choice, bool finishing) const {
    AddTensors(step, false);
    if (KeepsStatistics(choice)) {
      step.args.push_back(ArgBinding::Workspace("mean"));
      step.args.push_back(ArgBinding::Workspace("rstd"));
    }
    AddTensors(step, true);
    if (choice.fused) step.args.push_back(ArgBinding::Workspace("shares"));
    if (finishing) step.args.push_back(ArgBinding::Workspace("parts"));
    AddScalars(step);
  }

  void AddScalars(LaunchStep& step) const {
    if (spec_.attributes.contains("eps"))
      step.args.push_back(ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("eps")));
    step.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")));
  }

  void AddSplit(const Configuration& configuration, const Choice& choice, LaunchPlan& plan) const {
    plan.workspaces.push_back({"parts", Expr::MustParse(fmt::format("rows * {}", choice.split * kernel_.part_bytes))});
    LaunchStep partial = RowStep("partial", configuration, choice);
    for (const ArgSpec& arg : spec_.args) {
      const bool affine = arg.name == "weight" || arg.name == "bias";
      if (arg.role == Role::kInput && (!affine || kernel_.gradients))
        partial.args.push_back(ArgBinding::Tensor(arg.name));
    }
    partial.args.push_back(ArgBinding::Workspace("parts"));
    partial.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")));
    plan.steps.push_back(std::move(partial));
    LaunchStep finish = RowStep("finish", configuration, choice);
    AddArguments(finish, choice, true);
    plan.steps.push_back(std::move(finish));
  }

  /// Shares of the column sums, if the rows' pass did not make them, and their sum.
  void AddGradients(const Choice& choice, LaunchPlan& plan) const {
    const std::string count =
        choice.fused ? Groups(choice) : fmt::format("min({}, ceil_div(rows, 8))", kColumnRowBlocks);
    plan.workspaces.push_back({"shares", Expr::MustParse(fmt::format("({}) * {}", count, 8 * cols_))});
    if (!choice.fused) {
      for (const char* name : {"mean", "rstd"}) plan.workspaces.push_back({name, Expr::MustParse("rows * 4")});
      LaunchStep columns;
      columns.entry = "columns";
      const int64_t width = cols_ % choice.vector == 0 ? choice.vector : 1;
      columns.grid[0] = Expr((cols_ + 32 * width - 1) / (32 * width));
      columns.grid[1] = Expr::MustParse(count);
      columns.block[0] = Expr(256);
      columns.args = {ArgBinding::Tensor("x"),         ArgBinding::Tensor("dy"),
                      ArgBinding::Workspace("mean"),   ArgBinding::Workspace("rstd"),
                      ArgBinding::Workspace("shares"), ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows"))};
      plan.steps.push_back(std::move(columns));
    }
    LaunchStep add;
    add.entry = "add_shares";
    add.grid[0] = Expr((cols_ + 31) / 32);
    add.block[0] = Expr(32 * kAddGroups);
    add.args = {ArgBinding::Workspace("shares"), ArgBinding::Tensor("dweight"), ArgBinding::Tensor("dbias"),
                ArgBinding::Scalar(DType::kInt32, Expr::MustParse(count))};
    plan.steps.push_back(std::move(add));
  }

  const RowKernel& kernel_;
  int64_t cols_;
  int64_t rows_;
  int64_t element_;
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
