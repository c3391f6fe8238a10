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
    {"layernorm", embed::kLayernormCu, 1, 2, 12, 13, false},
    {"layernorm_backward", embed::kLayernormBackwardCu, 2, 1, 20, 24, true},
};

const RowKernel* FindKernel(std::string_view name) {
  const auto at = std::ranges::find(kKernels, name, &RowKernel::name);
  return at == std::end(kKernels) ? nullptr : at;
}

/// Vectors that a row touches, at most, over the parameters.
constexpr const char* kVectors = "ceil_div(cols + (cols % vector != 0) * (vector - 1), vector)";
constexpr int64_t kAddGroups = 8;         // shares of column sums that one block adds at a time
constexpr int64_t kWords = 4;             // that blocks tell each other about a row
constexpr int64_t kColumnRowBlocks = 64;  // blocks that share the rows in the pass over columns

class RowTemplate : public BoundTemplate {
 public:
  RowTemplate(const RowKernel& kernel, const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        kernel_(kernel),
        task_{kernel, profile_, dim("cols"), BytesOf(element_), MinimumBytes(spec_, spec_.dims).value_or(0)} {
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const RowChoice choice = Read(configuration);
    ConstantBlock constants;
    if (!half_precision()) constants.Line("typedef float T;");
    constants.Line("enum Storage { REGISTERS, SHARED, RELOAD };");
    constants.Line("constexpr Storage STORAGE = " + Capitals(choice.storage) + ";");
    const Chosen& at = choice.at;
    constants.Int("COLS", task_.cols)
        .Ints(at, {"threads_per_row", "rows_per_block", "prefetch", "keep"})
        .Int("UNROLL", 8, "vectors at once of a row that does not stay in registers")
        .Int("VEC", choice.vector, "elements per load")
        .Int("TENSORS", kernel_.tensors, "read row by row")
        .Int("PARAMETERS", kernel_.parameters, "values per column")
        .Int("ADD_GROUPS", kAddGroups)
        .Int("BOXES", choice.defers() ? 4 : 2, "that what blocks of a cluster tell each other comes in by turns")
        .Bool("BY_VALUE", true, "what all of them say of one value lies together");
    for (const char* name : {"cluster", "owners", "split", "fused"}) constants.Define(Capitals(name), at[name]);
    constants.Line(kernel_.name == "softmax" ? "#define NEUTRAL MINUS_INFINITY" : "#define NEUTRAL 0.0f");
    if (choice.owners > 1) {
      constants.Ints(at, {"blocks_per_sm", "batch"})
          .Int("RING", task_.Ring(choice), "batches under way")
          .Int("AHEAD", task_.Ahead(choice), "of those being copied")
          .Bool("DIRECT", SumsAreWhole(choice));
    }
    LaunchPlan plan = Plan(configuration, {});
    if (choice.owners > 1) AddExchange(choice, plan);
    AddRows(choice, plan);
    if (kernel_.gradients && !SumsAreWhole(choice)) AddGradients(choice, plan);
    const bool cluster = choice.cluster > 1;
    return RenderedKernel{Emit(configuration, constants,
                               {embed::kElementCuh, embed::kVectorCuh, embed::kCombineCuh, embed::kWarpReduceCuh,
                                embed::kRowReduceCuh, TextIf(cluster, embed::kTensorCopiesCuh),
                                TextIf(cluster, embed::kClusterCuh), TextIf(cluster, embed::kClusterPartsCuh),
                                embed::kRowCommonCuh, TextIf(kernel_.parameters > 0, embed::kRowMomentsCuh),
                                kernel_.text, TextIf(choice.owners > 1, embed::kLayernormBackwardOwnersCuh)}),
                          std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // Only the number of rows is free: enough to fill several blocks and leave the last one partly empty.
    const RowChoice choice = Read(configuration);
    const int64_t turns =
        choice.owners > 1 ? choice.batch * (task_.Ring(choice) + 1) * task_.ResidentGroups(choice) : 2;
    const int64_t few = std::clamp<int64_t>(200000 / task_.cols, 1, turns * choice.rows + 1);
    std::vector<Dims> sizes;
    for (int64_t rows : {int64_t{1}, few}) {
      const Dims dims = {{"cols", task_.cols}, {"rows", std::min(rows, dim("rows"))}};
      if (std::ranges::find(sizes, dims) == sizes.end()) sizes.push_back(dims);
    }
    return sizes;
  }

  SizeFreedom FreeSizes(const Configuration&) const override { return {{"rows"}, {}}; }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile&) const override {
    return task_.Estimate(Read(configuration));
  }

 private:
  /// Column sums want a block that goes on, with the next rows under way and the parameters at hand.
  std::vector<Choices> Ways() const override {
    const auto fix = [&](Choices& way, std::initializer_list<const char*> names, const std::vector<Value>& values) {
      for (const char* name : names) way[At(name)] = values;
    };
    Choices usual = AllValues();
    fix(usual, {"owners", "batch", "split"}, Integers({1}));
    // Column sums leave few registers for wide vectors of short elements.
    fix(usual, {"vector"}, {std::min<int64_t>(kernel_.gradients ? 4 : 16 / task_.element, LargestVector())});
    std::vector<Choices> ways;
    for (const char* storage : {"registers", "shared", "reload"}) {
      Choices stays = usual;
      fix(stays, {"storage"}, {std::string(storage)});
      Choices ends = stays;
      fix(stays, {"fused"}, Integers({kernel_.gradients}));
      fix(stays, {"blocks_per_sm"}, Integers({1, 2, 3}));
      fix(ends, {"fused", "prefetch", "keep", "blocks_per_sm"}, Integers({0}));
      ways.insert(ways.end(), {stays, ends});
    }
    fix(usual, {"batch"}, Integers({1, 2, 4, 8}));
    fix(usual, {"vector"}, Integers({16 / task_.element, 8 / task_.element}));
    fix(usual, {"storage"}, {std::string("shared")});
    fix(usual, {"rows_per_block", "cluster", "fused", "prefetch", "keep"}, Integers({1}));
    fix(usual, {"blocks_per_sm"}, Integers({1, 2}));
    for (const Value& owners : owners_) {
      fix(usual, {"owners"}, {owners});
      ways.push_back(usual);
    }
    return ways;
  }
  size_t At(std::string_view parameter) const { return static_cast<size_t>(space_.Find(parameter)); }

  RowChoice Read(const Configuration& configuration) const { return {.at = chosen(configuration)}; }

  int64_t LargestVector() const {
    int64_t vector = 16 / task_.element;
    while (vector > 1 && vector > task_.cols) vector /= 2;
    return vector;
  }

  // --- space ---

  void MakeSpace() {
    if (kernel_.gradients && profile_.cc_major >= 8) {
      // Powers of two cut rows evenly, which counts for more than the last few multiprocessors.
      const auto most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(profile_.sms)));
      owners_ = Integers({most, most / 2, most / 4, most / 8});
    }
    std::vector<Value> owners = {int64_t{1}};
    owners.insert(owners.end(), owners_.begin(), owners_.end());
    // What constraints ask for early stands early: the space is enumerated in this order.
    space_.parameters = {
        {"threads_per_row", Integers({8, 16, 32, 64, 128, 256, 512, 1024}), "threads that share one row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 16, 32}), "rows one block works on at once"},
        {"vector", PowersOfTwo(LargestVector(), [](int64_t) { return true; }), "elements per load"},
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
        {"prefetch", profile_.cc_major >= 8 ? Integers({0, 1, 2}) : Integers({0}),
         "copy the next rows to shared memory while these are reduced; 2 = and the rows before are written"},
        {"keep", kernel_.parameters > 0 ? Integers({0, 1}) : Integers({0}), "keep the values per column in registers"},
        {"blocks_per_sm", Integers({0, 1, 2, 3, 4, 8}), "0 = one block per row group, else a persistent grid"},
    };
    Add("threads_per_row * rows_per_block <= 1024", "a block has at most 1024 threads");
    Add("threads_per_row * rows_per_block >= 32", "whole warps only");
    Add("rows_per_block <= max(1, rows)", "more rows than there are");
    Add("cluster == 1 or (rows_per_block == 1 and threads_per_row >= 128 and cols >= 4096)",
        "clusters serve long rows");
    Add("split == 1 or (cluster == 1 and rows_per_block == 1 and threads_per_row >= 128 and cols >= split * "
        "threads_per_row * vector)",
        "splitting serves long rows");
    Add("owners > 1 or batch == 1", "only blocks that own columns take rows in batches");
    Add("owners == 1 or (cluster == 1 and split == 1 and rows_per_block == 1 and threads_per_row >= 128 and "
        "threads_per_row <= 512 and cols >= 4096)",
        "blocks that own columns serve long rows");
    Add("owners == 1 or (storage == 'shared' and fused == 1 and prefetch == 1 and keep == 1)",
        "blocks that own columns keep what belongs to them in registers, and rows in shared memory");
    Add("owners == 1 or blocks_per_sm == 1 or blocks_per_sm == 2", "all blocks that own columns run at once");
    Add("split == 1 or (storage == 'reload' and fused == 0 and prefetch == 0)",
        "a split row is read twice, and column sums need whole rows");
    // One warp alone on a row is always allowed: a single short row needs some block of a whole warp.
    Add("threads_per_row * vector * cluster * owners < 2 * cols or threads_per_row == 8 or (threads_per_row == 32 and "
        "rows_per_block == 1)",
        "more threads than elements");
    Add("prefetch == 0 or storage != 'reload'", "what is read again is not copied");
    Add("prefetch < 2 or storage == 'shared'", "rows in registers make room before the next ones come");
    Add("keep == 0 or blocks_per_sm > 0", "values in registers serve a block that goes on");
    Add(fmt::format("prefetch == 0 or (vector * {} >= 4 and cols % vector == 0 and blocks_per_sm > 0)", task_.element),
        "asynchronous copies take 4, 8 or 16 aligned bytes, and serve blocks with more than one group");
    Add("(fused == 0 and keep == 0) or cols % vector == 0",
        "where rows begin inside of vectors, no thread keeps to its columns");
    Add("fused == 0 or storage != 'reload'", "column sums go with a row that is kept");
    Add("fused == 0 or blocks_per_sm > 0", "column sums need a block that goes on");
    AddResources();
  }

  /// What a block takes of registers and of shared memory.
  void AddResources() {
    const std::string chunks = fmt::format("ceil_div({}, cluster * owners * split * threads_per_row)", kVectors);
    const std::string registers = fmt::format(
        "((storage == 'registers') * {0} * vector * {1} // 4 + keep * {0} * vector * {3} // 4 + fused * "
        "{0} * vector * (owners > 1 ? 4 : 2) + {2} + 8 * vector // 4 + 8 * (batch - 1))",
        chunks, kernel_.tensors * task_.element, kOtherRegisters, kernel_.parameters * task_.element);
    Add(fmt::format("{} <= 255", registers), "the row does not fit in registers");
    Add(fmt::format("{} * threads_per_row * rows_per_block * max(1, fused * blocks_per_sm) <= 65536", registers),
        "the blocks do not fit in the register file");
    Add(fmt::format("fused == 0 or {} * vector * rows_per_block <= 512", chunks),
        "column sums of many rows are added by code that takes long to compile");
    Add(fmt::format("({}) * max(1, fused * blocks_per_sm) <= {}", SharedText(), task_.SharedForRows()),
        "shared memory");
  }

  /// Dynamic shared memory of a block over the parameters, as row_common.cuh lays it out.
  std::string SharedText() const {
    return fmt::format(
        "threads_per_row * rows_per_block * vector * (((owners > 1) * {} * batch + (owners == 1) * ((storage == "
        "'shared') + prefetch)) * {} * ceil_div(ceil_div({}, cluster * owners * split), threads_per_row) * {})",
        RowTask::kLeastRing, kernel_.tensors, kVectors, task_.element);
  }

  int64_t SharedBytes(const RowChoice& choice) const {
    if (choice.owners > 1) return task_.Ring(choice) * choice.batch * kernel_.tensors * task_.RowBytesOfBlock(choice);
    return Evaluate(Expr::MustParse(SharedText()), choice.at);
  }

  // --- launch ---

  std::string Groups(const RowChoice& choice) const {
    const std::string groups = fmt::format("ceil_div(rows, {})", choice.rows);
    const int64_t most = choice.blocks_per_sm == 0 ? INT32_MAX / choice.parts() : task_.ResidentGroups(choice);
    return fmt::format("min({}, {})", groups, most);
  }

  /// Do the blocks that own columns see all rows?
  bool SumsAreWhole(const RowChoice& choice) const { return choice.owners > 1 && task_.ResidentGroups(choice) == 1; }

  /// Tensors and statistics, what the kernel hands on, and scalars; null for what it does not.
  Arguments ArgumentsOf(const RowChoice& choice) const {
    const auto if_any = [](bool any, const char* word) { return any ? word : "i64:0"; };
    const bool owners = choice.owners > 1;
    Arguments all, outputs;
    for (const ArgSpec& arg : spec_.args) {
      const bool gradient = arg.name == "dweight" || arg.name == "dbias";
      if (arg.role == Role::kInput) all.emplace_back(arg.name);
      if (arg.role == Role::kOutput && (!gradient || owners)) outputs.emplace_back(arg.name);
    }
    if (kernel_.gradients) {
      for (const char* of_rows : {"@mean", "@rstd"}) {
        if (!owners) all.emplace_back(if_any(!choice.fused, of_rows));
      }
      outputs.emplace_back(if_any(choice.fused && !SumsAreWhole(choice), "@shares"));
    }
    if (owners) outputs.emplace_back("@words");
    all.insert(all.end(), outputs.begin(), outputs.end());
    if (spec_.attributes.contains("eps")) all.emplace_back("f32:eps");
    all.emplace_back("i64:rows");
    return all;
  }

  /// The pass over rows; of split ones two, with what their parts come to between.
  void AddRows(const RowChoice& choice, LaunchPlan& plan) const {
    LaunchStep step = Step("kernel", fmt::format("{} * {}", Groups(choice), choice.parts()),
                           choice.block() + (choice.owners > 1 ? 64 : 0), ArgumentsOf(choice));
    step.cluster[0] = Expr(choice.cluster);
    step.cooperative = choice.owners > 1;
    step.shared_bytes = Expr(SharedBytes(choice));
    if (choice.split == 1) {
      plan.steps.push_back(std::move(step));
      return;
    }
    plan.workspaces.push_back({"parts", Expr::MustParse(fmt::format("rows * {}", choice.split * kernel_.part_bytes))});
    for (const char* number : {"i32:0", "i32:1"}) {
      plan.steps.push_back(step);
      AddArguments(plan.steps.back(), {"@parts", number});
    }
  }

  /// The words by which blocks that own columns tell each other of their rows, as layernorm_backward_owners.cuh lays
  /// them out; they belong to no row at first.
  void AddExchange(const RowChoice& choice, LaunchPlan& plan) const {
    const std::string words =
        fmt::format("({}) * {}", Groups(choice), task_.ExchangedRows(choice) * 2 * choice.owners * kWords);
    plan.workspaces.push_back({"words", Expr::MustParse(words + " * 8")});
    plan.steps.push_back(Step("clear_words", fmt::format("ceil_div({}, 256)", words), 256, {"@words", "i64:" + words}));
  }

  /// Shares of the column sums, if the rows' pass did not make them, and their sum.
  void AddGradients(const RowChoice& choice, LaunchPlan& plan) const {
    const std::string count =
        choice.fused ? Groups(choice) : fmt::format("min({}, ceil_div(rows, 8))", kColumnRowBlocks);
    plan.workspaces.push_back({"shares", Expr::MustParse(fmt::format("({}) * {}", count, 8 * task_.cols))});
    if (!choice.fused) {
      for (const char* name : {"mean", "rstd"}) plan.workspaces.push_back({name, Expr::MustParse("rows * 4")});
      const int64_t width = task_.cols % choice.vector == 0 ? choice.vector : 1;
      plan.steps.push_back(Step("columns", fmt::format("ceil_div(cols, {})", 32 * width), 256,
                                {"x", "dy", "@mean", "@rstd", "@shares", "i64:rows"}));
      plan.steps.back().grid[1] = Expr::MustParse(count);
    }
    plan.steps.push_back(Step("add_shares", "ceil_div(cols, 32)", Expr(32 * kAddGroups),
                              {"@shares", "dweight", "dbias", "i32:" + count}));
  }

  const RowKernel& kernel_;
  RowTask task_;
  std::vector<Value> owners_;  ///< numbers of blocks that may own the columns of a row
};

bool Matches(const KernelSpec& spec) {
  return spec.oracle.kind == Oracle::Kind::kOperator && FindKernel(spec.name) != nullptr;
}
Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  auto bound = std::make_unique<RowTemplate>(*FindKernel(spec.name), spec, profile);
  if (!bound->Default().values.empty()) return bound;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("rows of {} elements are too long for {}", spec.dims.at("cols"), spec.name));
}

}  // namespace

constinit const Family kRowFamily = {"rows", Matches, Bind};

}  // namespace atunner
