// Outer-axis reductions: column sums, bias gradients, statistics of channels, softmax along an axis
// that is not the last; and last-axis reductions of few long rows. A block owns some neighbouring
// kept (not reduced) elements. The reduction is divided over the threads of a block, and over
// blocks whose partial results a further kernel combines, always in the same order.
//
// Example: the sum over axis 0 of x[4096, 1024] keeps 1024 columns. With kept_threads = 32,
// vector = 4, reduced_threads = 8 and splits = 16, a block of 256 threads has 128 neighbouring
// columns and 256 of the 4096 rows; 8 x 16 blocks write 16 partial sums per column, which the
// kernel `finish` adds up.
//
// `hold` says how results that need the elements again get them: 0 reads them once more from
// memory, 1 holds them in registers, 2 in a ring in shared memory (columns_ring_text.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/reduce/columns_text.h"
#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

std::optional<ReductionProgram> ProgramOf(const Task& task) {
  auto program = task.graph() ? MakeColumnsProgram(*task.graph()) : std::nullopt;
  return program && ColumnsCanBeWritten(*program) ? std::move(program) : std::nullopt;
}

constexpr int64_t kHeldBytes = 384;  // bytes that a thread holds between passes
constexpr int64_t kRing = 2;         // the value of `hold` for a ring
constexpr int64_t kMaxSlots = 9;     // most segments in a ring
constexpr int64_t kSlotBytes = 512;  // shared memory of a slot beside its elements

class ColumnsTemplate : public GraphTemplate {
 public:
  ColumnsTemplate(const KernelSpec& spec, const DeviceProfile& profile, ReductionProgram program)
      : GraphTemplate(spec, profile, program.graph), program_(std::move(program)) {
    auto online = MakeColumnsProgram(graph_, /*online=*/true);
    if (online && CanRing(*online)) in_ring_ = std::move(online);
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t vector = at["vector"];
    ConstantBlock constants;
    constants.Int("LANES", program_.kept_inside ? vector : 1, "kept elements of a thread")
        .Bool("KEPT_INSIDE", program_.kept_inside, "neighbours in memory are kept, not reduced")
        .Line(fmt::format("constexpr long long STEPS = {};  // {} to reduce", Steps(vector),
                          program_.kept_inside || vector == 1 ? "elements" : "vectors"));
    const ColumnsSchedule schedule = ScheduleOf(at);
    if (schedule.ring)
      constants.Int("MAX_STEPS", MaxSteps(at), "vectors of a segment, at most")
          .Int("SLOTS", Slots(at), "segments of a ring in shared memory")
          .Int("DELAY", Delay(at), "segments between reducing one and writing it")
          .Int("RING_STEPS", RingSteps(at), "vectors of each input in a ring");
    return RenderedKernel{
        Source(configuration, "outer-axis reduction", constants,
               {TextIf(schedule.narrow, embed::kNarrowCuh), embed::kVectorCuh, embed::kCombineCuh,
                embed::kColumnsCuh, TextIf(schedule.ring, embed::kTensorCopiesCuh),
                TextIf(schedule.ring, embed::kColumnsRingCuh),
                ColumnsText(schedule.ring ? *in_ring_ : program_, spec_, schedule)}),
        PlanOf(configuration)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    return CheckSizes(program_.space, at["kept_threads"] * at["vector"] * Reduced());
  }

  ValidSizes FreeSizes(const Configuration&) const override { return OpenSize(kElementNumbers); }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    if (at["hold"] == kRing) return RingNs(at);
    const CostConstants& costs = CostsOf(profile);
    const double vector = Real(at["vector"]);
    const double threads = Real(at["kept_threads"]) * Real(at["reduced_threads"]);
    const double lanes = program_.kept_inside ? vector : 1;
    const double strips = Strips(at);
    const double used = Kept() / (strips * Real(at["kept_threads"]) * lanes);
    const double blocks = strips * Real(at["splits"]);
    const double steps = std::max(
        1.0, Real(Steps(at["vector"])) / (Real(at["splits"]) * Real(at["reduced_threads"])));
    const double resident = std::min(blocks * threads * used,
                                     profile.sms * costs.column_sm_threads);
    const double flight = resident *
                          (at["hold"] > 0 ? steps : std::min(Real(at["unroll"]), steps)) * vector *
                          Narrowest();
    const double idle = std::max(1.0, profile.sms * costs.column_flight_bytes / flight);
    const double each = blocks / profile.sms;
    // Latencies want many threads.
    const double few_threads = 1 + costs.column_few_threads *
                                       std::max(0.0,
                                                std::log2(1024 / std::min(1024.0, each * threads)));
    const double large = 1 + costs.column_large_block * std::fabs(std::log2(threads / 128));
    const double passes = at["hold"] > 0 ? 1 : Real(Readings());
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0) *
                         (program_.element_outputs.empty() ? passes : (passes + 1) / 2);
    const double kernels = at["splits"] == 1 ? 1 : program_.pass_count + 1;
    const double parts = at["splits"] > 1 ? Real(at["splits"]) * Kept() * 8.0 * kernels : 0;
    const double overhead = 1 + costs.column_combine * (Real(at["reduced_threads"]) / steps) +
                            Wide(at, costs);
    return (bytes * Line(at, costs) * Narrow(at, costs) * idle * Tail(each, threads) * few_threads *
                large * overhead * HeldPause(at, threads, steps, costs) *
                Functions(configuration, costs) +
            parts) /
               profile.dram_gbps +
           kernels * costs.column_launch_ns;
  }

 private:
  /// The factor of broken lines: neighbouring threads should touch whole ones.
  double Line(const Chosen& at, const CostConstants& costs) const {
    const double line = (program_.kept_inside ? Real(at["kept_threads"])
                                              : Real(at["reduced_threads"])) *
                        Real(at["vector"]) * Narrowest();
    // Rows far apart share no page of DRAM, so each should be read in long pieces.
    if (!program_.kept_inside && at["kept_threads"] > 1 && line < 1024) return costs.column_line64;
    return line >= 256   ? 1.0
           : line >= 128 ? costs.column_line128
           : line >= 64  ? costs.column_line64
                         : std::min(costs.column_line_most, costs.column_line_bytes / line);
  }
  /// The factor of narrow accesses.
  double Narrow(const Chosen& at, const CostConstants& costs) const {
    const double width = Real(at["vector"]) * Narrowest();
    return width >= (program_.kept_inside ? 8 : 16) ? 1.0
           : width >= 8                             ? costs.column_vector8
           : width >= 4                             ? costs.column_vector4
                                                    : costs.column_vector2;
  }
  /// Two loads of 16 bytes help where neighbours are added up, with much to compute for each.
  double Wide(const Chosen& at, const CostConstants& costs) const {
    return Real(at["vector"]) * Narrowest() <= 16    ? 0
           : program_.kept_inside || Narrowest() < 4 ? costs.column_vector32
                                                     : costs.column_vector32_gain;
  }
  /// The factor of the last wave: `each` blocks per SM of one wave, if they are few, leave some SMs
  /// with less to do.
  static double Tail(double each, double threads) {
    const double waves = each / std::max(1.0, std::floor(1536 / threads));
    return waves > 1 ? std::ceil(waves) / waves : each < 2.5 ? std::ceil(each) / each : 1.0;
  }
  /// Blocks that hold their elements load, compute and write in turn: only other blocks fill the
  /// pauses.
  double HeldPause(const Chosen& at, double threads, double steps,
                   const CostConstants& costs) const {
    if (at["hold"] == 0) return 1.0;
    const double registers = (Narrowest() < 4 ? 48 : 30) +
                             steps * Real(at["vector"]) * Real(ElementBytes()) / 4;
    const double resident = std::max(1.0, std::floor(65536 / (registers * threads)));
    const double few = 512 / (resident * threads);
    return 1 + costs.column_held_pause * few * few + (resident < 2 ? costs.column_held_alone : 0);
  }
  /// Elements that are held should leave registers for other blocks: short functions make the
  /// compiler keep more.
  double Functions(const Configuration& configuration, const CostConstants& costs) const {
    const bool shorter = IsNarrow(graph_, space_, configuration) !=
                         (chosen(configuration)["hold"] > 0);
    return MayBeNarrow(graph_) && !shorter ? costs.narrow_functions : 1.0;
  }
  int64_t Reduced() const { return graph::ElementCount(program_.Part(true)).factor(); }
  double Kept() const {
    return Real(graph::ElementCount(program_.Part(false)).Bound(spec_.dims).factor());
  }
  ColumnsSchedule ScheduleOf(const Chosen& at) const {
    return {at["vector"],    at["splits"],        at["unroll"],
            at["hold"] == 1, at["hold"] == kRing, IsNarrow(graph_, space_, at.configuration)};
  }
  /// True if a ring can compute the program: one pass over columns that are contiguous in memory,
  /// so that blocks exchange partial results once, on a GPU with cp.async.
  bool CanRing(const ReductionProgram& program) const {
    return CapabilitiesOf(profile_).cp_async && ElementBytes() > 0 &&
           !program.element_outputs.empty() && program.pass_count == 1 && !program.kept_inside &&
           program.equals.empty() && Reduced() < INT32_MAX &&
           ColumnsCanBeWritten(program, {.splits = 2, .ring = true});
  }
  /// Most vectors of a segment.
  int64_t MaxSteps(const Chosen& at) const { return CeilDiv(Steps(at["vector"]), at["splits"]); }
  /// Vectors of one input's ring, a multiple of 4, so that the next input's ring is aligned.
  int64_t RingSteps(const Chosen& at) const { return CeilDiv(MaxSteps(at) * Slots(at), 4) * 4; }
  int64_t SegmentBytes(const Chosen& at) const {
    return MaxSteps(at) * at["vector"] * ElementBytes() + kSlotBytes;
  }
  /// Segments in a ring: as many as there is room for.
  int64_t Slots(const Chosen& at) const {
    const int64_t room = std::min<int64_t>(
        profile_.shared_per_block,
        profile_.shared_per_sm / at["rings"] - profile_.shared_reserved_per_block);
    return std::min(room / SegmentBytes(at), kMaxSlots);
  }
  /// Segments that wait for other blocks: three more than a block has of a column (batch_norm
  /// 256 x 64 x 112 x 112 in float32 took 783, 508 and 470 us with five, six and seven, where a
  /// block has four segments of each column).
  int64_t Delay(const Chosen& at) const {
    const int64_t of_column = CeilDiv(at["splits"], at["rings"] * profile_.sms);
    return std::min(std::max(2 * Slots(at) / 3, of_column + 3), Slots(at) - 2);
  }
  double Strips(const Chosen& at) const {
    const int64_t lanes = program_.kept_inside ? at["vector"] : 1;
    return std::ceil(Kept() / Real(at["kept_threads"] * lanes));
  }
  /// ns with a ring: memory decides. Measured best on an H200: one block of 512 threads on each SM,
  /// with nine slots for moments; exponentials, which take longer, want larger segments.
  double RingNs(const Chosen& at) const {
    const CostConstants& costs = CostsOf(profile_);
    const double width = Real(at["vector"]) * Narrowest() >= 16 ? 1 : costs.ring_vector8;
    const double off = std::fabs(
                           std::log2(Real(SegmentBytes(at)) /
                                     (program_.beside.empty() ? costs.ring_part_bytes_exponentials
                                                              : costs.ring_part_bytes))) +
                       std::fabs(std::log2(Real(at["reduced_threads"] * at["rings"]) /
                                           costs.ring_threads));
    const double turns = Strips(at) * Real(at["splits"]) / Real(at["rings"] * profile_.sms);
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile_.dram_gbps * width *
               (costs.ring_base + costs.ring_off * off) * std::ceil(turns) / turns +
           2 * costs.column_launch_ns + costs.ring_exchange_ns;
  }
  /// Passes over the elements.
  int64_t Readings() const {
    return program_.pass_count + (program_.element_outputs.empty() ? 0 : 1);
  }
  /// Bytes of one element in all inputs of the space's shape.
  int64_t ElementBytes() const {
    int64_t bytes = 0;
    for (graph::NodeId id : program_.graph.inputs()) {
      const graph::TensorType& type = program_.graph.node(id).type;
      if (type.shape == program_.space) bytes += BytesOf(type.dtype);
    }
    return bytes;
  }
  int64_t Steps(int64_t vector) const {
    return program_.kept_inside ? Reduced() : Reduced() / vector;
  }
  /// Bytes of the widest element that is moved in vectors.
  int64_t Widest() const {
    int64_t widest = 1;
    const auto add = [&](graph::NodeId id) {
      if (program_.kept_inside || !program_.IsShared(id))
        widest = std::max(widest, BytesOf(TypeOf(id).dtype));
    };
    for (graph::NodeId id : graph_.inputs()) add(id);
    for (const graph::Output& output : graph_.outputs()) add(output.node);
    return widest;
  }
  double Narrowest() const {
    size_t narrowest = 8;
    for (const ArgSpec& arg : spec_.args) {
      if (arg.role == Role::kInput) narrowest = std::min(narrowest, SizeOf(arg.dtype));
    }
    return static_cast<double>(narrowest);
  }

  void MakeSpace() {
    const int inner = program_.InnerAxis();
    const int64_t extent = inner < 0 ? 1 : program_.space[inner].factor();
    space_.parameters = {
        {"kept_threads", Integers({1, 4, 8, 16, 32, 64, 128, 256}),
         "neighbouring threads along the kept (not reduced) axes"},
        {"reduced_threads", Integers({1, 4, 8, 16, 32, 64, 128, 256, 512}),
         "threads that divide the reduction"},
        {"vector", VectorWidths(Widest(), extent, 32),
         "neighbouring elements that a thread moves at once"},
        {"splits", Splits(), "blocks that divide the reduction"},
        {"unroll", Integers({1, 4, 8}), "steps of the loop whose loads are in flight together"},
        {"hold",
         Readings() == 1 ? Integers({0})
         : in_ring_      ? Integers({0, 1, kRing})
                         : Integers({0, 1}),
         "where elements stay between passes: 0 = nowhere, 1 = in registers, 2 = in a ring in "
         "shared memory"},
        {"rings", in_ring_ ? Integers({1, 2, 3, 4}) : Integers({1}),
         "blocks of an SM with a ring each"},
    };
    Add("hold == 2 or rings == 1", "no rings");
    AddFunctions(graph_, space_);
    AddThreadLimits();
    AddHoldLimits();
    AddRegisterLimits();
  }
  /// 768 segments of 16 MB fit into the rings of an H100, and neither 512 nor 1024 do.
  std::vector<Value> Splits() const {
    return in_ring_ ? Integers({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024})
                    : Integers({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  }
  /// Steps of a column, as an expression.
  std::string StepsText() const {
    return fmt::format("{}{}", Reduced(), program_.kept_inside ? "" : " // vector");
  }
  void AddThreadLimits() {
    const std::string steps = StepsText(), lanes = program_.kept_inside ? "vector" : "1";
    Add("kept_threads * reduced_threads <= 512 and kept_threads * reduced_threads >= 64",
        "2 to 16 warps");
    Add(fmt::format("kept_threads * {} < 2 * {:.0f} or kept_threads == 1 or (kept_threads == 64 "
                    "and reduced_threads == 1)",
                    lanes, Kept()),
        "more threads than kept elements");
    Add(fmt::format("reduced_threads == 1 or reduced_threads * splits < 2 * ({})", steps),
        "more threads than steps");
    Add(fmt::format("splits == 1 or splits <= ({})", steps), "more blocks than steps");
    // Long chains of additions lose accuracy that a plain sum of 256 of them keeps.
    Add(fmt::format("{} <= reduced_threads * splits * max(256, {} // 64)", Reduced(), Reduced()),
        "sums in one long chain");
  }
  void AddHoldLimits() {
    const std::string steps = StepsText();
    // The number of kept elements is a multiple of this.
    const int64_t kept = graph::ElementCount(program_.Part(false)).factor();
    Add(fmt::format(
            "hold != 1 or (splits == 1 and unroll == 1 and ({0}) % reduced_threads == 0 and "
            "({0}) // reduced_threads * vector * {1} <= {2} and {3} % (kept_threads * {4}) == 0)",
            steps, std::max<int64_t>(ElementBytes(), 4), kHeldBytes, kept,
            program_.kept_inside ? "vector" : "1"),
        "a thread holds few elements, none of them beyond an end");
    const std::string segment = fmt::format(
        "(ceil_div({}, splits) * kept_threads * vector * {} + 64)", steps, ElementBytes());
    Add(fmt::format("hold < 2 or vector * {} >= 4", Narrowest()), "asynchronous copies");
    const std::string slots = fmt::format(
        "min({}, min({}, {} // rings - {}) // ({} + {}))", kMaxSlots, profile_.shared_per_block,
        profile_.shared_per_sm, profile_.shared_reserved_per_block, segment, kSlotBytes);
    Add(fmt::format("hold != 2 or (kept_threads == 1 and reduced_threads >= 64 and splits > 1 and "
                    "unroll == 4 and "
                    "splits * reduced_threads <= {} and splits * {:.0f} < 1073741824)",
                    steps, Kept()),
        "segments have vectors for every thread, and 32 bits number them");
    Add(fmt::format("hold != 2 or (rings * (reduced_threads + 64) <= 2048 and {0} >= 4 and splits "
                    "<= ({0} - 3) * rings * {1})",
                    slots, profile_.sms),
        "a ring has four slots, three more than a block has segments of a column");
    Add("reduced_threads != 128 or hold == 2", "only measured in rings");
  }
  void AddRegisterLimits() {
    Add("unroll * vector <= 32", "loads in flight take registers");
    size_t bytes = 0;  // shared memory for each thread and lane; each kind of reduction has its own
    for (const ColumnsPartial& partial : PartialsOf(program_, false)) bytes += partial.bytes;
    Add(fmt::format("reduced_threads == 1 or kept_threads * reduced_threads * {} * {} <= 49152",
                    program_.kept_inside ? "vector" : "1", std::min<size_t>(bytes, 48)),
        "partial results exceed shared memory");
    Add(fmt::format("hold != 2 or {} * (reduced_threads // 32 + 1) + 16 <= {}", bytes, kSlotBytes),
        "partial results of warps exceed their shared memory");
  }

  /// The workspaces of partial results. Those of a ring have 64-bit words with flags, which a first
  /// kernel clears.
  void AddPartials(const ColumnsSchedule& schedule, const std::vector<ColumnsPartial>& partials,
                   LaunchPlan& plan) const {
    const std::string kept = graph::CountText(program_.Part(false));
    for (const ColumnsPartial& partial : partials) {
      plan.workspaces.push_back(
          {partial.name,
           Expr::MustParse(fmt::format("{} * {} * {}", schedule.splits, partial.bytes, kept))});
      if (!schedule.ring) continue;
      const std::string words = fmt::format("{} * {} * {}", schedule.splits, partial.bytes / 8,
                                            kept);
      plan.steps.push_back(Step("clear_published", fmt::format("ceil_div({}, 256)", words),
                                Expr(256), {"@" + partial.name, "i64:" + words}));
    }
  }
  LaunchStep PassStep(const std::string& name, const Chosen& at, bool ring) const {
    const std::string columns = fmt::format("ceil_div({}, kept_threads * {})",
                                            graph::CountText(program_.Part(false)),
                                            program_.kept_inside ? "vector" : "1");
    LaunchStep step = Launch(name, columns,
                             ring ? "reduced_threads + 64" : "kept_threads * reduced_threads");
    step.cooperative = ring;
    if (ring) {
      step.grid[0] = Expr::MustParse(
          fmt::format("min({} * splits, {} * rings)", columns, profile_.sms));
      step.grid[1] = Expr(1);
      step.shared_bytes = Expr(RingSteps(at) * at["vector"] * ElementBytes());
    } else {
      // A kernel that only writes values per kept element reduces nothing.
      step.grid[1] = Expr::MustParse(
          name == "finish" && program_.element_outputs.empty() ? "1" : "splits");
    }
    return step;
  }
  LaunchPlan PlanOf(const Configuration& configuration) const {
    const Chosen at = chosen(configuration);
    const ColumnsSchedule schedule = ScheduleOf(at);
    std::vector<ColumnsPartial> partials;
    if (schedule.splits > 1)
      partials = PartialsOf(schedule.ring ? *in_ring_ : program_, schedule.ring);
    LaunchPlan plan = Plan(configuration, {});
    AddPartials(schedule, partials, plan);
    for (const std::string& name : ColumnsKernels(program_, schedule)) {
      plan.steps.push_back(PassStep(name, at, schedule.ring));
      for (const ColumnsPartial& partial : partials)
        AddArguments(plan.steps.back(), {"@" + partial.name});
    }
    return plan;
  }

  ReductionProgram program_;
  std::optional<ReductionProgram> in_ring_;  ///< with sums of exponentials beside their maximum
};

}  // namespace

constinit const Family kColumnsFamily{
    .name = "columns", .Try = TryForm<ColumnsTemplate, ProgramOf>, .only_large_reductions = true};

}  // namespace atunner
