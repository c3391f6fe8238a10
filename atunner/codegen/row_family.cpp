// Rows: softmax and layernorm, forward and backward. A row stays in registers or shared memory between the passes over
// it, or is read again; one block serves several rows, or several blocks one row, in parts that a cluster shares or
// whose columns each block owns.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "atunner/codegen/row_schedule.h"
#include "embed/families.h"

namespace atunner {
namespace {

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

constexpr int64_t kAddGroups = 8;         // shares of column sums that one block adds at a time
constexpr int64_t kWords = 4;             // that blocks tell each other about a row
constexpr int64_t kColumnRowBlocks = 64;  // blocks that share the rows in the pass over columns

class RowTemplate : public BoundTemplate {
 public:
  RowTemplate(const RowKernel& kernel, const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        kernel_(kernel),
        cols_(dim("cols")),
        rows_(dim("rows")),
        element_(static_cast<int64_t>(SizeOf(spec.compute_dtype))),
        task_{kernel_, profile_, cols_, element_, MinimumBytes(spec_, spec_.dims).value_or(0)} {
    MakeSpace();
  }

  Configuration Default() const override {
    Configuration best;
    double least = INFINITY;
    const auto consider = [&](const Configuration& one) {
      if (!InSpace(one)) return;
      const double cost = task_.Estimate(Read(one));
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
      for (int64_t owners : owners_) ForEachOwner(threads, owners, consider);
    }
    return best;
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const RowChoice choice = Read(configuration);
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
        .Define("OWNERS", choice.owners)
        .Define("SPLIT", choice.split)
        .Define("FUSED", choice.fused ? 1 : 0)
        .Line(kernel_.name == "softmax" ? "#define NEUTRAL MINUS_INFINITY" : "#define NEUTRAL 0.0f");
    if (choice.owners > 1) {
      constants.Int("BLOCKS_PER_SM", choice.blocks_per_sm)
          .Int("BATCH", choice.batch, "rows that are measured at once")
          .Int("RING", task_.Ring(choice), "batches under way")
          .Int("AHEAD", task_.Ahead(choice), "of those being copied")
          .Define("DIRECT", SumsAreWhole(choice) ? 1 : 0);
    }
    LaunchPlan plan = Plan(configuration, {});
    if (choice.split > 1) {
      AddSplit(configuration, choice, plan);
    } else {
      if (choice.owners > 1) AddExchange(choice, plan);
      LaunchStep step = RowStep("kernel", configuration, choice);
      AddArguments(step, choice, false);
      plan.steps.push_back(std::move(step));
    }
    if (kernel_.gradients && !SumsAreWhole(choice)) AddGradients(choice, plan);
    return RenderedKernel{
        Emit(configuration, constants,
             {embed::kRowCommonCuh, kernel_.parameters > 0 ? embed::kRowMomentsCuh : std::string_view(), kernel_.text,
              choice.owners > 1 ? embed::kLayernormBackwardOwnersCuh : std::string_view()}),
        std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // Only the number of rows is free: enough to fill several blocks and leave the last one partly empty.
    const RowChoice choice = Read(configuration);
    const int64_t turns =
        choice.owners > 1 ? choice.batch * (task_.Ring(choice) + 1) * task_.ResidentGroups(choice) : 2;
    const int64_t few = std::clamp<int64_t>(200000 / cols_, 1, turns * choice.rows + 1);
    std::vector<Dims> sizes;
    for (int64_t rows : {int64_t{1}, few}) {
      const Dims dims = {{"cols", cols_}, {"rows", std::min(rows, rows_)}};
      if (std::ranges::find(sizes, dims) == sizes.end()) sizes.push_back(dims);
    }
    return sizes;
  }

  SizeFreedom FreeSizes(const Configuration&) const override { return {{"rows"}, {}}; }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile&) const override {
    return task_.Estimate(Read(configuration));
  }

 private:
  /// The ways to schedule blocks of one shape that are worth starting from. Column sums want a block that goes on, with
  /// the next rows under way and the parameters at hand.
  template <class Consider>
  void ForEachWay(int64_t threads, int64_t rows, const char* storage, int64_t cluster, const Consider& consider) const {
    // Column sums leave few registers for wide vectors of short elements.
    const int64_t vector = std::min<int64_t>(kernel_.gradients ? 4 : 16 / element_, LargestVector());
    const auto assemble = [&](int64_t blocks, int64_t prefetch, int64_t keep, int64_t fused, int64_t sums) {
      consider({{threads, rows, vector, cluster, int64_t{1}, int64_t{1}, int64_t{1}, std::string(storage), fused, sums,
                 prefetch, keep, blocks, int64_t{storage == std::string("registers") ? 4 : 8}, int64_t{0}}});
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
  template <class Consider>
  void ForEachOwner(int64_t threads, int64_t owners, const Consider& consider) const {
    for (int64_t vector : {16 / element_, 8 / element_}) {
      for (int64_t batch : {1, 2, 4, 8}) {
        for (int64_t blocks : {1, 2}) {
          consider({{threads, int64_t{1}, vector, int64_t{1}, owners, batch, int64_t{1}, std::string("shared"),
                     int64_t{1}, int64_t{0}, int64_t{1}, int64_t{2}, blocks, int64_t{8}, int64_t{0}}});
        }
      }
    }
  }

  RowChoice Read(const Configuration& configuration) const {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    return {.threads = integer("threads_per_row"),
            .rows = integer("rows_per_block"),
            .vector = integer("vector"),
            .storage = ToString(Get(space_, configuration, "storage")),
            .unroll = integer("unroll"),
            .blocks_per_sm = integer("blocks_per_sm"),
            .cluster = integer("cluster"),
            .owners = integer("owners"),
            .split = integer("split"),
            .batch = integer("batch"),
            .shared_sums = integer("shared_sums"),
            .prefetch = integer("prefetch"),
            .keep = integer("keep"),
            .stream = integer("stream") != 0,
            .fused = integer("fused") != 0};
  }

  int64_t LargestVector() const {
    int64_t vector = 16 / element_;
    while (vector > 1 && vector > cols_) vector /= 2;
    return vector;
  }

  // --- space ---

  void MakeSpace() {
    if (kernel_.gradients && profile_.cc_major >= 8) {
      // Powers of two cut rows evenly, which counts for more than the last few multiprocessors.
      const auto most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(profile_.sms)));
      for (int64_t share : {1, 2, 4, 8}) owners_.push_back(most / share);
    }
    std::vector<Value> owners = {int64_t{1}};
    owners.insert(owners.end(), owners_.begin(), owners_.end());
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
        {"owners", owners, "blocks that share one row, each with columns of its own for all rows"},
        {"batch", owners_.empty() ? Integers({1}) : Integers({1, 2, 4, 8}), "rows that such blocks measure at once"},
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
    AddOwners();
    Add("split == 1 or storage == 'reload'", "a split row is read twice");
    Add("split == 1 or fused == 0", "column sums need whole rows");
    Add("split == 1 or prefetch == 0", "a split row is read twice");
    // One warp alone on a row is always allowed: a single short row needs some block of a whole warp.
    Add(fmt::format("threads_per_row * vector * cluster * owners < 2 * {} or threads_per_row == 8 or "
                    "(threads_per_row == 32 and rows_per_block == 1)",
                    cols_),
        "more threads than elements");
    Add("storage != 'registers' or unroll == 4", "register storage unrolls fully");
    Add("storage != 'shared' or fused == 0 or prefetch == 0 or keep < 2 or unroll == 8",
        "column sums and values in registers unroll fully");
    Add("prefetch == 0 or storage != 'reload'", "what is read again is not copied");
    Add("prefetch < 2 or storage == 'shared'", "rows in registers make room before the next ones come");
    Add("keep < 2 or blocks_per_sm > 0", "values in registers serve a block that goes on");
    Add(fmt::format("prefetch == 0 or (vector * {} >= 4 and {} % vector == 0 and blocks_per_sm > 0)", element_, cols_),
        "asynchronous copies take 4, 8 or 16 aligned bytes, and serve blocks with more than one group");
    Add(fmt::format("(fused == 0 and keep == 0) or {} % vector == 0", cols_),
        "where rows begin inside of vectors, no thread keeps to its columns");
    Add("fused == 0 or storage != 'reload'", "column sums go with a row that is kept");
    Add("fused == 0 or blocks_per_sm > 0", "column sums need a block that goes on");
    AddResources();
  }

  /// What a block takes of registers and of shared memory.
  void AddResources() {
    const std::string chunks = fmt::format("ceil_div({}, cluster * owners * split * threads_per_row)", VectorsText());
    Add(fmt::format("shared_sums == 0 or (fused == 1 and shared_sums <= {})", chunks), "more chunks than there are");
    const std::string registers = fmt::format(
        "((storage == 'registers') * {0} * vector * {1} // 4 + (keep == 2) * {0} * vector * {3} // 4 + fused * max(0, "
        "{0} "
        "- shared_sums) * vector * (owners > 1 ? 4 : 2) + {2} + 8 * vector // 4 + 8 * (batch - 1))",
        chunks, task_.HeldBytes(), kOtherRegisters, kernel_.parameters * element_);
    Add(fmt::format("{} <= 255", registers), "the row does not fit in registers");
    Add(fmt::format("{} * threads_per_row * rows_per_block * max(1, fused * blocks_per_sm) <= 65536", registers),
        "the blocks do not fit in the register file");
    Add(fmt::format("fused == 0 or {} * vector * rows_per_block <= 512", chunks),
        "column sums of many rows are added by code that takes long to compile");
    Add(fmt::format("({}) * max(1, fused * blocks_per_sm) <= {}", SharedText(), task_.SharedForRows()),
        "shared memory");
  }

  void AddOwners() {
    Add("owners > 1 or batch == 1", "only blocks that own columns take rows in batches");
    Add(fmt::format(
            "owners == 1 or (cluster == 1 and split == 1 and rows_per_block == 1 and threads_per_row >= 128 and "
            "threads_per_row <= 512 and {} >= 4096)",
            cols_),
        "blocks that own columns serve long rows");
    Add("owners == 1 or (storage == 'shared' and fused == 1 and prefetch == 1 and keep == 2 and shared_sums == 0)",
        "blocks that own columns keep what belongs to them in registers, and rows in shared memory");
    Add("owners == 1 or blocks_per_sm == 1 or blocks_per_sm == 2", "all blocks that own columns run at once");
  }

  /// Vectors that a row touches, at most, over the parameters.
  std::string VectorsText() const {
    return fmt::format("ceil_div({0} + ({0} % vector != 0) * (vector - 1), vector)", cols_);
  }

  /// Dynamic shared memory of a block over the parameters, as row_common.cuh and ColumnSums lay it out.
  std::string SharedText() const {
    const std::string per_thread =
        fmt::format("ceil_div(ceil_div({}, cluster * owners * split), threads_per_row)", VectorsText());
    return fmt::format(
        "threads_per_row * rows_per_block * vector * "
        "((((owners > 1) * {4} * batch + (owners == 1) * ((storage == 'shared') + prefetch)) * {0} + (keep == 1) * "
        "{1}) * {2} * {3} + "
        "shared_sums * 8)",
        kernel_.tensors, kernel_.parameters, per_thread, element_, RowTask::kLeastRing);
  }

  int64_t SharedBytes(const Configuration& configuration) const {
    const std::vector<std::string> names = space_.Names();
    Bindings bindings;
    bindings.Add(names, configuration.values);
    return Expr::MustParse(SharedText()).EvaluateInt(bindings).value();
  }
  int64_t SharedBytes(const Configuration& configuration, const RowChoice& choice) const {
    if (choice.owners > 1) return task_.Ring(choice) * choice.batch * kernel_.tensors * task_.RowBytesOfBlock(choice);
    return SharedBytes(configuration);
  }

  bool InSpace(const Configuration& one) const {
    for (size_t i = 0; i < one.values.size(); ++i) {
      if (std::ranges::find(space_.parameters[i].values, one.values[i]) == space_.parameters[i].values.end())
        return false;
    }
    return true;
  }

  // --- launch ---

  std::string Groups(const RowChoice& choice) const {
    const std::string groups = fmt::format("ceil_div(rows, {})", choice.rows);
    const int64_t most = choice.blocks_per_sm == 0 ? INT32_MAX / choice.parts() : task_.ResidentGroups(choice);
    return fmt::format("min({}, {})", groups, most);
  }

  LaunchStep RowStep(const char* entry, const Configuration& configuration, const RowChoice& choice) const {
    LaunchStep step;
    step.entry = entry;
    step.grid[0] = Expr::MustParse(fmt::format("{} * {}", Groups(choice), choice.parts()));
    step.block[0] = Expr(choice.block() + (choice.owners > 1 ? 64 : 0));
    step.cluster[0] = Expr(choice.cluster);
    step.cooperative = choice.owners > 1;
    step.shared_bytes = Expr(SharedBytes(configuration, choice));
    return step;
  }

  void AddTensors(LaunchStep& step, bool outputs, bool gradients = false) const {
    for (const ArgSpec& arg : spec_.args) {
      const bool gradient = arg.name == "dweight" || arg.name == "dbias";
      if (arg.role == Role::kScalar || (gradient && !gradients) || (arg.role == Role::kOutput) != outputs) continue;
      step.args.push_back(ArgBinding::Tensor(arg.name));
    }
  }

  bool KeepsStatistics(const RowChoice& choice) const { return kernel_.gradients && !choice.fused; }
  /// Do the blocks that own columns see all rows?
  bool SumsAreWhole(const RowChoice& choice) const { return choice.owners > 1 && task_.ResidentGroups(choice) == 1; }

  /// Inputs, statistics, the output, and what the kernel hands on.
  void AddArguments(LaunchStep& step, const RowChoice& choice, bool finishing) const {
    AddTensors(step, false);
    if (KeepsStatistics(choice)) {
      step.args.push_back(ArgBinding::Workspace("mean"));
      step.args.push_back(ArgBinding::Workspace("rstd"));
    }
    AddTensors(step, true, SumsAreWhole(choice));
    if (choice.fused && !SumsAreWhole(choice)) step.args.push_back(ArgBinding::Workspace("shares"));
    if (choice.owners > 1) step.args.push_back(ArgBinding::Workspace("words"));
    if (finishing) step.args.push_back(ArgBinding::Workspace("parts"));
    AddScalars(step);
  }

  void AddScalars(LaunchStep& step) const {
    if (spec_.attributes.contains("eps"))
      step.args.push_back(ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("eps")));
    step.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")));
  }

  void AddSplit(const Configuration& configuration, const RowChoice& choice, LaunchPlan& plan) const {
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

  /// The words by which blocks that own columns tell each other of their rows, as layernorm_backward_owners.cuh lays
  /// them out; they belong to no row at first.
  void AddExchange(const RowChoice& choice, LaunchPlan& plan) const {
    const std::string words =
        fmt::format("({}) * {}", Groups(choice), task_.ExchangedRows(choice) * 2 * choice.owners * kWords);
    plan.workspaces.push_back({"words", Expr::MustParse(words + " * 8")});
    LaunchStep clear;
    clear.entry = "clear";
    clear.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, 256)", words));
    clear.block[0] = Expr(256);
    clear.args = {ArgBinding::Workspace("words"), ArgBinding::Scalar(DType::kInt64, Expr::MustParse(words))};
    plan.steps.push_back(std::move(clear));
  }

  /// Shares of the column sums, if the rows' pass did not make them, and their sum.
  void AddGradients(const RowChoice& choice, LaunchPlan& plan) const {
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
  RowTask task_;
  std::vector<int64_t> owners_;  ///< numbers of blocks that may own the columns of a row
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
