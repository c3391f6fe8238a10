// Last-axis reductions: graphs of maps and reductions over the same last axes (softmax, norms,
// losses per row, sums). The threads of a row hold its elements in registers between the passes, or
// read them again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/codegen/reduce/reduction_text.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/operators/graph_operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::NodeId;

/// Elements of a row.
int64_t Columns(const ReductionProgram& program) {
  return graph::ElementCount(program.Part(true)).factor();
}

/// True for few long rows, which leave most of a device idle with one block per row: the outer-axis
/// family divides them. Up to 256 KiB a single block reads a row sooner than a second kernel
/// starts.
bool FewLongRows(const ReductionProgram& program, const KernelSpec& spec) {
  size_t bytes = 0;
  for (const RowInput& input : RowInputsOf(program))
    bytes += SizeOf(program.graph.node(input.id).type.dtype);
  return Columns(program) * static_cast<int64_t>(bytes) > 256 << 10 &&
         graph::ElementCount(program.Part(false)).Bound(spec.dims).factor() <= 64;
}

/// True for rows of whole vectors that exceed an SM's shared memory and would be read twice: the
/// blocks of a cluster hold them together.
bool ExceedsBlock(const ReductionProgram& program) {
  size_t bytes = 0;
  for (const RowInput& input : RowInputsOf(program)) {
    if (input.passes > 1) bytes += SizeOf(program.graph.node(input.id).type.dtype);
  }
  return !program.element_outputs.empty() && Columns(program) % 16 == 0 &&
         Columns(program) * static_cast<int64_t>(bytes) > 220 << 10;
}

struct Programs {
  ReductionProgram held;  ///< where rows stay in registers or shared memory
  ReductionProgram read;  ///< where each pass reads them again
};

std::optional<Programs> ProgramsOf(const Task& task) {
  const graph::ValidGraph* graph = task.graph();
  auto program = graph ? MakeRowsProgram(*graph) : std::nullopt;
  if (!program || FewLongRows(*program, task.spec()) || ExceedsBlock(*program)) return std::nullopt;
  return Programs{*std::move(program), MakeRowsProgram(*graph, /*online=*/true).value()};
}

constexpr int64_t kLongRow = 16384;      // bytes, from which rows may stay in shared memory
constexpr int64_t kOtherRegisters = 40;  // addresses, sums and temporaries beside the kept elements

class ReductionTemplate : public GraphTemplate {
 public:
  ReductionTemplate(const KernelSpec& spec, const DeviceProfile& profile, Programs programs)
      : GraphTemplate(spec, profile, programs.held.graph),
        program_(std::move(programs.held)),
        read_again_(std::move(programs.read)),
        columns_(Columns(program_)) {
    for (const RowInput& input : RowInputsOf(program_)) {
      const int64_t bytes = ElementBytes(input.id);
      narrowest_ = std::min(narrowest_, bytes);
      copied_bytes_ += bytes;
      (input.passes > 1 ? kept_bytes_ : copied_only_bytes_) += bytes;
    }
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const std::string storage = at.Word("storage");
    const ReductionSchedule schedule = {.vector = at["vector"],
                                        .keeps = storage == "registers",
                                        .prefetch = at["blocks_per_sm"] != 0,
                                        .staged = storage == "staged",
                                        .uneven = columns_ % at["vector"] != 0,
                                        .narrow = IsNarrow(graph_, space_, at)};
    // Inputs that are not kept in registers are read in as few passes as possible.
    const bool again = storage == "reload" || storage == "shared";
    const ReductionProgram& program = again ? read_again_ : program_;
    ConstantBlock constants;
    constants.Int("COLS", columns_, "elements of a row");
    return RenderedKernel{Source(at, "last-axis reduction", constants,
                                 {TextIf(schedule.narrow, embed::kNarrowCuh), embed::kVectorCuh,
                                  embed::kCombineCuh, embed::kWarpReduceCuh, embed::kRowReduceCuh,
                                  embed::kRowsCuh, ReductionText(program, spec_, schedule)}),
                          Plan(at, {RowsStep(at)})};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return CheckSizes(program_.space, chosen(configuration)["rows_per_block"] * columns_);
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Choice choice = ChoiceOf(chosen(configuration));
    const CostConstants& costs = CostsOf(profile);
    const double again = choice.storage == "reload"
                             ? costs.reduction_reread * streamed() *
                                   Real(read_again_.pass_count - (writes() ? 0 : 1)) *
                                   choice.columns
                             : 0;
    const double barriers = choice.threads > 32
                                ? costs.reduction_barrier * std::log2(choice.threads / 32)
                                : 0,
                 small = choice.block < 128 ? costs.reduction_small_block : 0;
    // One row alone (the mean of a loss) waits for memory once for every few vectors of a thread.
    const double few = Rows() < Real(profile.sms) ? costs.reduction_alone_ns * choice.chunks : 0;
    return (MinimumBytes(spec_, spec_.dims).value_or(0) + again * Rows()) / profile.dram_gbps *
               Moved(choice, costs) *
               (1 + costs.reduction_off * Off(choice, costs) + barriers + small) *
               BlockFactor(choice, costs) +
           few;
  }

 private:
  /// The numbers of a configuration that its cost depends on.
  struct Choice {
    Chosen at;
    std::string storage;
    double threads, block, vector, columns;
    double per_thread;  ///< elements of a row
    double chunks;      ///< vectors of a thread
    bool ends;          ///< rows in registers, by blocks that end with them
    bool ahead;         ///< persistent blocks that copy the next rows
  };
  Choice ChoiceOf(const Chosen& at) const {
    const std::string storage = at.Word("storage");
    const double threads = Real(at["threads_per_row"]), vector = Real(at["vector"]),
                 columns = Real(columns_), per_thread = columns / threads;
    return {at,
            storage,
            threads,
            threads * Real(at["rows_per_block"]),
            vector,
            columns,
            per_thread,
            std::ceil(per_thread / vector),
            storage == "registers" && at["blocks_per_sm"] == 0,
            at["blocks_per_sm"] > 0};
  }
  bool writes() const { return !program_.element_outputs.empty(); }
  /// Elements of 4 bytes and more are written.
  bool wide() const { return writes() && narrowest_ >= 4; }
  /// Bytes of a row's element in all inputs that have one for each.
  double streamed() const { return Real(std::max<int64_t>(copied_bytes_, 1)); }

  /// The factor of narrow accesses. Copies want 16 bytes, of which two beside each other write
  /// halves of sectors; rows written from shared memory want many threads each: rms_norm of
  /// 1000000 x 77 in bfloat16 took 1143 us on an H200 with one thread, 162 with sixteen.
  double Narrow(const Choice& choice, const CostConstants& costs) const {
    const bool staged = choice.storage == "staged", shared = choice.storage == "shared";
    const double width = staged ? 16 : choice.vector * Real(narrowest_) * (shared ? 0.5 : 1);
    if (staged && writes())
      return costs.reduction_staged_write +
             costs.reduction_staged_write_bytes / (choice.threads * Real(narrowest_));
    return width > 16 && writes() ? costs.reduction_vector32_write
           : width >= 16          ? 1.0
           : width >= 8           ? costs.reduction_vector8
           : width >= 4           ? costs.reduction_vector4
                                  : costs.reduction_vector2;
  }
  /// The factor of how rows are read and written. Rows that begin at any byte are read one element
  /// after the other: the bytes that a row's threads touch together count, and their work beside
  /// reading (rms_norm above: 97 us with sixteen threads, 147 with 32, 165 with eight).
  double Moved(const Choice& choice, const CostConstants& costs) const {
    if (!odd_ || choice.storage == "staged") {
      const double idle = choice.chunks * choice.vector / choice.per_thread;
      return Narrow(choice, costs) * (0.5 + 0.5 * idle);
    }
    const double together = choice.threads * choice.vector * Real(narrowest_);
    const double broken = together >= 128  ? 1.0
                          : together >= 64 ? costs.reduction_line64
                          : together >= 32 ? costs.reduction_line32
                                           : costs.reduction_line16;
    return costs.reduction_odd_base + costs.reduction_odd_chunk * broken *
                                          (choice.chunks + costs.reduction_odd_steps) *
                                          choice.threads / choice.columns;
  }
  /// Distance in powers of two from the bytes per thread, or threads, that measured best. Float32
  /// that is written wants fewer bytes.
  double Off(const Choice& choice, const CostConstants& costs) const {
    const auto from = [](double value, double wanted) {
      return std::fabs(std::log2(value / wanted));
    };
    if (choice.storage == "staged")
      return from(choice.threads, writes() ? 16 : 1) + from(choice.block, 256);
    const double bytes = choice.per_thread * streamed();
    if (choice.storage == "reload" && bytes > 128) return from(choice.threads, 128);  // long rows
    const double best = !choice.ends || !wide()               ? costs.reduction_thread_bytes
                        : choice.columns * streamed() < 16384 ? costs.reduction_thread_bytes_short
                                                              : costs.reduction_thread_bytes_wide;
    return from(bytes, best);
  }
  /// The factor of the block's size and of where it keeps rows. Blocks that load, reduce and write
  /// in turn leave memory idle where few of them fit; the next row's copies do not. Rows that are
  /// written, of 16 bits up to 32 KB and of float32 up to 64, took 4 to 7 % less by blocks that
  /// end. Short rows want many threads, blocks that end with their rows, and the caches: rms_norm
  /// of 4096 floats took 258 us where blocks that stay and copy ahead took 276, evict-first 362.
  double BlockFactor(const Choice& choice, const CostConstants& costs) const {
    const bool long_rows = choice.columns * streamed() > (wide()     ? 65536
                                                          : writes() ? 32768
                                                                     : 16384);
    double factor = choice.ends && long_rows ? costs.reduction_long_ends : 1.0;
    if (choice.ahead && !long_rows) factor *= costs.reduction_short_ahead;
    // Two blocks of an SM fill each other's pauses: cross_entropy_backward 8192 x 50257 in bfloat16
    // took 483 us; one block of 512 threads 532 or 566, of 1024 544.
    if (choice.storage == "shared")
      factor *= choice.at["blocks_per_sm"] > 1 ? costs.reduction_shared_many
                                               : costs.reduction_shared_one;
    factor *= SizeFactor(choice, choice.ends && !long_rows, costs);
    if (choice.ahead && Real(choice.at["blocks_per_sm"]) * choice.block < 512)
      factor *= costs.reduction_few_threads;
    if (MayBeNarrow(graph_) && !IsNarrow(graph_, space_, choice.at))
      factor *= costs.narrow_functions;
    return factor;
  }
  /// Rows of short elements in registers want small blocks (var 65536 x 4096 in bfloat16 128 us
  /// where blocks of 512 threads take 147), smaller ones where they are written (rms_norm 8192 x
  /// 8192 68.1 us with 128 threads, 69.9 with 256); float32 that is written larger ones (rms_norm
  /// 32768 x 4096 258 us with 512 threads, 264).
  double SizeFactor(const Choice& choice, bool registers, const CostConstants& costs) const {
    const double best = !registers || wide() ? 512 : writes() ? 128 : 256;
    if (choice.block == best || (!registers && choice.block > best)) return 1.0;
    return registers && choice.block > 512 ? costs.reduction_block_far : costs.reduction_block_off;
  }

  int64_t ElementBytes(NodeId id) const { return BytesOf(graph_.node(id).type.dtype); }
  double Rows() const {
    return Real(graph::ElementCount(program_.Part(false)).Bound(spec_.dims).factor());
  }

  void MakeSpace() {
    // Short rows that begin at any element: single elements are slow to read from memory, but not
    // from shared memory.
    odd_ = copied_bytes_ > 0 && columns_ * narrowest_ % 16 != 0 && columns_ <= 512 &&
           CapabilitiesOf(profile_).cp_async;
    const bool again = kept_bytes_ > 0;
    const bool uneven = IsUneven();
    space_.parameters = {
        {"threads_per_row",
         odd_ ? Integers({1, 2, 4, 8, 16, 32, 64, 128, 256})
              : Integers({8, 16, 32, 64, 128, 256, 512, 1024}),
         "threads that share one row"},
        {"rows_per_block",
         odd_ ? Integers({1, 2, 4, 8, 16, 32, 64, 128, 256}) : Integers({1, 2, 4, 8, 16, 32}),
         "rows one block works on at once"},
        {"vector", Vectors(uneven), "neighbouring elements that a thread moves at once"},
        {"storage", Storages(), "where the row stays between the passes"},
        {"blocks_per_sm",
         again && CapabilitiesOf(profile_).cp_async ? Integers({0, 1, 2, 4, 8}) : Integers({0}),
         "0 = one block per group of rows, else a persistent grid that copies the next rows to "
         "shared memory "
         "meanwhile"},
    };
    AddFunctions(graph_, space_);
    if (uneven)
      Add(fmt::format("{} % vector == 0 or storage == 'reload' or storage == 'shared'", columns_),
          "rows that begin between vectors");
    AddBlockLimits();
    AddStorageLimits();
  }
  /// Elements of the innermost axis, if it is reduced: neighbours in memory within a row.
  int64_t Neighbours() const {
    const int inner = program_.InnerAxis();
    return inner < 0 || !program_.reduced[inner] ? 1 : program_.space[inner].factor();
  }
  /// True for long rows that begin at any element: they are whole vectors but for their ends.
  bool IsUneven() const {
    return columns_ >= 1024 && Neighbours() == columns_ &&
           std::ranges::all_of(graph_.inputs(), [&](NodeId id) {
             return program_.IsShared(id) || program_.IsStreamed(id);
           });
  }
  std::vector<Value> Vectors(bool uneven) const {
    int64_t widest = 1;
    for (NodeId id : graph_.inputs()) {
      if (!program_.IsShared(id)) widest = std::max(widest, ElementBytes(id));
    }
    for (const graph::Output& output : graph_.outputs())
      widest = std::max(widest, ElementBytes(output.node));
    return PowersOfTwo(std::min<int64_t>(16, 32 / widest),
                       [&](int64_t v) { return uneven || Neighbours() % v == 0; });
  }
  std::vector<Value> Storages() const {
    const bool again = kept_bytes_ > 0;
    std::vector<Value> storages = {std::string("reload")};
    if (again) storages.insert(storages.begin(), std::string("registers"));
    if (odd_) storages.emplace_back(std::string("staged"));
    if (again && columns_ * copied_bytes_ > kLongRow && CapabilitiesOf(profile_).cp_async)
      storages.emplace_back(std::string("shared"));
    return storages;
  }
  void AddBlockLimits() {
    Add("threads_per_row * rows_per_block <= 1024", "a block has at most 1024 threads");
    Add("threads_per_row * rows_per_block >= 32", "whole warps only");
    if (odd_) {
      Add("storage == 'staged' or (threads_per_row >= 8 and rows_per_block <= 32)",
          "threads of a row read neighbours");
      Add(fmt::format(
              "storage != 'staged' or (rows_per_block * {} % 16 == 0 and rows_per_block * {} <= "
              "45056)",
              columns_ * narrowest_, columns_ * copied_bytes_),
          "whole pieces of 16 bytes in shared memory");
    }
    Add(fmt::format("rows_per_block <= max(1, {:.0f}) or threads_per_row * rows_per_block == 32",
                    Rows()),
        "more rows than there are");
    Add(fmt::format("threads_per_row * vector < 2 * {} or threads_per_row <= 8 or (threads_per_row "
                    "== 32 and "
                    "rows_per_block == 1)",
                    columns_),
        "more threads than elements");
  }
  void AddStorageLimits() {
    const std::string chunks = fmt::format("ceil_div({}, threads_per_row * vector)", columns_);
    Add(fmt::format(
            "storage != 'registers' or {} * vector * ({} + (blocks_per_sm > 0) * {}) // 4 + {} <= "
            "min(255, 65536 // (threads_per_row * rows_per_block))",
            chunks, std::max<int64_t>(kept_bytes_, 1), copied_only_bytes_, kOtherRegisters),
        "the row does not fit in registers");
    Add(fmt::format("blocks_per_sm == 0 or ((storage == 'registers' or storage == 'shared') and "
                    "vector * {} >= 4)",
                    narrowest_),
        "asynchronous copies take 4, 8 or 16 bytes, and rows that are read again or staged gain "
        "nothing by them");
    Add(fmt::format(
            "storage != 'shared' or (blocks_per_sm > 0 and threads_per_row >= 128 and {} <= 32)",
            chunks),
        "rows in shared memory are long, and copied");
    Add(fmt::format(
            "blocks_per_sm * ({} * threads_per_row * rows_per_block * vector * {} + 2048) <= {}",
            chunks, copied_bytes_, profile_.shared_per_block),
        "the rows that are copied exceed shared memory");
  }

  LaunchStep RowsStep(const Chosen& at) const {
    const int64_t persistent = at["blocks_per_sm"] * profile_.sms;
    const std::string rows = graph::CountText(program_.Part(false));
    LaunchStep step = Launch("kernel",
                             fmt::format("min(ceil_div({}, rows_per_block), {})", rows,
                                         persistent > 0 ? persistent : INT32_MAX),
                             "threads_per_row * rows_per_block");
    step.shared_bytes = Expr::MustParse(
        fmt::format("(blocks_per_sm > 0) * ceil_div({}, threads_per_row * vector) * "
                    "threads_per_row * rows_per_block * vector * {}",
                    columns_, copied_bytes_));
    return step;
  }

  ReductionProgram program_;
  ReductionProgram read_again_;
  int64_t columns_;   ///< elements of a row
  bool odd_ = false;  ///< short rows that begin anywhere
  int64_t narrowest_ = 8;
  int64_t kept_bytes_ = 0;         ///< of one column, read in more than one pass
  int64_t copied_bytes_ = 0;       ///< of one column, where rows are copied before their turn
  int64_t copied_only_bytes_ = 0;  ///< bytes of those that only one pass reads
};

}  // namespace

constinit const Family kReductionFamily{"reduction", TryForm<ReductionTemplate, ProgramsOf>};

}  // namespace atunner
