// Last-axis rows: softmax and layernorm, forward and backward. A row stays in registers or shared
// memory between the passes over it, or is read again; one block serves several rows, or the blocks
// of a cluster share one row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/reduce/row_schedule.h"
#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/family.h"
#include "atunner/model/value/capabilities.h"
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
constexpr int64_t kColumnRowBlocks = 64;  // blocks that share the rows in the pass over columns

class RowTemplate : public BoundTemplate {
 public:
  RowTemplate(const RowKernel& kernel, const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        kernel_(kernel),
        task_{kernel, profile_, dim("cols"), BytesOf(element_),
              MinimumBytes(spec_, spec_.dims).value_or(0)} {
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const RowChoice choice = Read(configuration);
    LaunchPlan plan = Plan(configuration, {});
    AddRows(choice, plan);
    if (kernel_.gradients) AddGradients(choice, plan);
    const bool cluster = choice.cluster > 1;
    return RenderedKernel{
        Emit(configuration, ConstantsOf(choice),
             {embed::kElementCuh, embed::kVectorCuh, embed::kCombineCuh, embed::kWarpReduceCuh,
              embed::kRowReduceCuh, TextIf(cluster, embed::kTensorCopiesCuh),
              TextIf(cluster, embed::kClusterCuh), TextIf(cluster, embed::kClusterPartsCuh),
              embed::kRowCommonCuh, TextIf(kernel_.parameters > 0, embed::kRowMomentsCuh),
              kernel_.text}),
        std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // Only the number of rows is free: enough to fill several blocks and leave the last one partly
    // empty.
    const RowChoice choice = Read(configuration);
    const int64_t few = std::clamp<int64_t>(200000 / task_.cols, 1, 2 * choice.rows + 1);
    std::vector<Dims> sizes;
    for (int64_t rows : {int64_t{1}, few}) {
      const Dims dims = {{"cols", task_.cols}, {"rows", std::min(rows, dim("rows"))}};
      if (std::ranges::find(sizes, dims) == sizes.end()) sizes.push_back(dims);
    }
    return sizes;
  }

  ValidSizes FreeSizes(const Configuration&) const override { return {{"rows"}, {}}; }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile&) const override {
    return task_.Estimate(Read(configuration));
  }

 private:
  ConstantBlock ConstantsOf(const RowChoice& choice) const {
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
        .Int("MAILBOXES", choice.defers() ? 4 : 2,
             "buffers for what blocks of a cluster send, in turn")
        .Bool("BY_VALUE", true, "order: [value][block] instead of [block][value]");
    for (const char* name : {"cluster", "split", "fused"})
      constants.Define(Capitals(name), at[name]);
    constants.Line(kernel_.name == "softmax" ? "#define NEUTRAL MINUS_INFINITY"
                                             : "#define NEUTRAL 0.0f");
    return constants;
  }
  /// Column sums want a block that goes on, with the next rows under way and the parameters at
  /// hand.
  std::vector<Choices> Ways() const override {
    const auto fix = [&](Choices& way, std::initializer_list<const char*> names,
                         const std::vector<Value>& values) {
      for (const char* name : names) way[At(name)] = values;
    };
    Choices usual = AllValues();
    fix(usual, {"split"}, Integers({1}));
    // Column sums leave few registers for wide vectors of short elements.
    fix(usual, {"vector"},
        {std::min<int64_t>(kernel_.gradients ? 4 : 16 / task_.element, LargestVector())});
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
    return ways;
  }
  size_t At(std::string_view parameter) const {
    return static_cast<size_t>(space_.Find(parameter));
  }

  RowChoice Read(const Configuration& configuration) const { return {.at = chosen(configuration)}; }

  int64_t LargestVector() const {
    int64_t vector = 16 / task_.element;
    while (vector > 1 && vector > task_.cols) vector /= 2;
    return vector;
  }

  // --- space ---

  void MakeSpace() {
    // Parameters that many constraints use come first, because the space is enumerated in this
    // order.
    space_.parameters = {
        {"threads_per_row", Integers({8, 16, 32, 64, 128, 256, 512, 1024}),
         "threads that share one row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 16, 32}), "rows one block works on at once"},
        {"vector", PowersOfTwo(LargestVector(), [](int64_t) { return true; }), "elements per load"},
        {"cluster", CapabilitiesOf(profile_).clusters ? Integers({1, 2, 4, 8, 16}) : Integers({1}),
         "blocks that share one row through distributed shared memory"},
        {"split", Integers({1, 4, 16, 64}), "blocks that share one row, in two kernels"},
        {"storage",
         {std::string("registers"), std::string("shared"), std::string("reload")},
         "where the row stays between the passes"},
        {"fused", kernel_.gradients ? Integers({1, 0}) : Integers({0}),
         "column sums in the pass that gives dx, or in a pass of their own"},
        {"prefetch", CapabilitiesOf(profile_).cp_async ? Integers({0, 1, 2}) : Integers({0}),
         "copy the next rows to shared memory while these are reduced; 2 = and the rows before are "
         "written"},
        {"keep", kernel_.parameters > 0 ? Integers({0, 1}) : Integers({0}),
         "keep the values per column in registers"},
        {"blocks_per_sm", Integers({0, 1, 2, 3, 4, 8}),
         "0 = one block per row group, else a persistent grid"},
    };
    AddBlockLimits();
    AddStorageLimits();
    AddResources();
  }
  void AddBlockLimits() {
    Add("threads_per_row * rows_per_block <= 1024", "a block has at most 1024 threads");
    Add("threads_per_row * rows_per_block >= 32", "whole warps only");
    Add("rows_per_block <= max(1, rows)", "more rows than there are");
    Add("cluster == 1 or (rows_per_block == 1 and threads_per_row >= 128 and cols >= 4096)",
        "clusters serve long rows");
    Add("split == 1 or (cluster == 1 and rows_per_block == 1 and threads_per_row >= 128 and cols "
        ">= split * "
        "threads_per_row * vector)",
        "splitting serves long rows");
    Add("split == 1 or (storage == 'reload' and fused == 0 and prefetch == 0)",
        "a split row is read twice, and column sums need whole rows");
    // One warp alone on a row is always allowed: a single short row needs some block of a whole
    // warp.
    Add("threads_per_row * vector * cluster < 2 * cols or threads_per_row == 8 or (threads_per_row "
        "== 32 and "
        "rows_per_block == 1)",
        "more threads than elements");
  }
  void AddStorageLimits() {
    Add("prefetch == 0 or storage != 'reload'", "what is read again is not copied");
    Add("prefetch < 2 or storage == 'shared'",
        "rows in registers make room before the next ones come");
    Add("keep == 0 or blocks_per_sm > 0", "values in registers serve a block that goes on");
    Add(fmt::format(
            "prefetch == 0 or (vector * {} >= 4 and cols % vector == 0 and blocks_per_sm > 0)",
            task_.element),
        "asynchronous copies take 4, 8 or 16 aligned bytes, and serve blocks with more than one "
        "group");
    Add("(fused == 0 and keep == 0) or cols % vector == 0",
        "where rows begin inside of vectors, no thread keeps to its columns");
    Add("fused == 0 or storage != 'reload'", "column sums go with a row that is kept");
    Add("fused == 0 or blocks_per_sm > 0", "column sums need a block that goes on");
  }

  /// The limits of registers and of shared memory.
  void AddResources() {
    const std::string chunks = fmt::format("ceil_div({}, cluster * split * threads_per_row)",
                                           kVectors);
    const std::string registers = fmt::format(
        "((storage == 'registers') * {0} * vector * {1} // 4 + keep * {0} * vector * {3} // 4 + "
        "fused * "
        "{0} * vector * 2 + {2} + 8 * vector // 4)",
        chunks, kernel_.tensors * task_.element, kOtherRegisters,
        kernel_.parameters * task_.element);
    Add(fmt::format("{} <= 255", registers), "the row does not fit in registers");
    Add(fmt::format(
            "{} * threads_per_row * rows_per_block * max(1, fused * blocks_per_sm) <= 65536",
            registers),
        "the blocks do not fit in the register file");
    Add(fmt::format("fused == 0 or {} * vector * rows_per_block <= 512", chunks),
        "column sums of many rows are added by code that takes long to compile");
    Add(fmt::format("({}) * max(1, fused * blocks_per_sm) <= {}", SharedText(),
                    task_.SharedForRows()),
        "shared memory");
  }

  /// Dynamic shared memory of a block over the parameters, as row_common.cuh lays it out.
  std::string SharedText() const {
    return fmt::format(
        "threads_per_row * rows_per_block * vector * (((storage == 'shared') + prefetch) * {} * "
        "ceil_div(ceil_div({}, cluster * split), threads_per_row) * {})",
        kernel_.tensors, kVectors, task_.element);
  }

  int64_t SharedBytes(const RowChoice& choice) const {
    return Evaluate(Expr::MustParse(SharedText()), choice.at);
  }

  // --- launch ---

  std::string Groups(const RowChoice& choice) const {
    const std::string groups = fmt::format("ceil_div(rows, {})", choice.rows);
    const int64_t most = choice.blocks_per_sm == 0 ? INT32_MAX / choice.parts()
                                                   : task_.ResidentGroups(choice);
    return fmt::format("min({}, {})", groups, most);
  }

  /// Arguments: tensors and statistics, workspaces, and scalars; null for those that the kernel
  /// does not use.
  Arguments ArgumentsOf(const RowChoice& choice) const {
    const auto if_any = [](bool any, const char* word) { return any ? word : "i64:0"; };
    Arguments all, outputs;
    for (const ArgSpec& arg : spec_.args) {
      const bool gradient = arg.name == "dweight" || arg.name == "dbias";
      if (arg.role == Role::kInput) all.emplace_back(arg.name);
      if (arg.role == Role::kOutput && !gradient) outputs.emplace_back(arg.name);
    }
    if (kernel_.gradients) {
      for (const char* of_rows : {"@mean", "@rstd"}) {
        all.emplace_back(if_any(!choice.fused, of_rows));
      }
      outputs.emplace_back(if_any(choice.fused, "@partial_sums"));
    }
    all.insert(all.end(), outputs.begin(), outputs.end());
    if (spec_.attributes.contains("eps")) all.emplace_back("f32:eps");
    all.emplace_back("i64:rows");
    return all;
  }

  /// The pass over rows. Split rows take two launches, with their partial results in between.
  void AddRows(const RowChoice& choice, LaunchPlan& plan) const {
    LaunchStep step = Step("kernel", fmt::format("{} * {}", Groups(choice), choice.parts()),
                           choice.block(), ArgumentsOf(choice));
    step.cluster[0] = Expr(choice.cluster);
    step.shared_bytes = Expr(SharedBytes(choice));
    if (choice.split == 1) {
      plan.steps.push_back(std::move(step));
      return;
    }
    plan.workspaces.push_back(
        {"parts", Expr::MustParse(fmt::format("rows * {}", choice.split * kernel_.part_bytes))});
    for (const char* number : {"i32:0", "i32:1"}) {
      plan.steps.push_back(step);
      AddArguments(plan.steps.back(), {"@parts", number});
    }
  }

  /// Shares of the column sums, if the rows' pass did not make them, and their sum.
  void AddGradients(const RowChoice& choice, LaunchPlan& plan) const {
    const std::string count = choice.fused
                                  ? Groups(choice)
                                  : fmt::format("min({}, ceil_div(rows, 8))", kColumnRowBlocks);
    plan.workspaces.push_back(
        {"partial_sums", Expr::MustParse(fmt::format("({}) * {}", count, 8 * task_.cols))});
    if (!choice.fused) {
      for (const char* name : {"mean", "rstd"})
        plan.workspaces.push_back({name, Expr::MustParse("rows * 4")});
      const int64_t width = task_.cols % choice.vector == 0 ? choice.vector : 1;
      plan.steps.push_back(Step("columns", fmt::format("ceil_div(cols, {})", 32 * width), 256,
                                {"x", "dy", "@mean", "@rstd", "@partial_sums", "i64:rows"}));
      plan.steps.back().grid[1] = Expr::MustParse(count);
    }
    plan.steps.push_back(Step("add_partial_sums", "ceil_div(cols, 32)", Expr(32 * kAddGroups),
                              {"@partial_sums", "dweight", "dbias", "i32:" + count}));
  }

  const RowKernel& kernel_;
  RowTask task_;
};

BoundSchedule Bind(const RowKernel& kernel, const KernelSpec& spec, const DeviceProfile& profile) {
  auto bound = std::make_unique<RowTemplate>(kernel, spec, profile);
  if (!bound->Default().values.empty()) return bound;
  return Fail(ErrorCode::kUnsupported, fmt::format("rows of {} elements are too long for {}",
                                                   spec.dims.at("cols"), spec.name));
}

Binding Try(const Task& task) {
  const KernelSpec& spec = task.spec();
  const RowKernel* kernel = spec.oracle.kind == Oracle::Kind::kOperator ? FindKernel(spec.name)
                                                                        : nullptr;
  if (kernel == nullptr) return {};
  return {.bind = [kernel, spec](const DeviceProfile& profile) {
    return Bind(*kernel, spec, profile);
  }};
}

}  // namespace

constinit const Family kRowFamily{"rows", Try};

}  // namespace atunner
