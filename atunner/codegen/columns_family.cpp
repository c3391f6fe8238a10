// Reductions over any axes: column sums, bias gradients, statistics of channels, softmax along an axis that is not the
// last. Blocks own strips of what is kept; what is reduced is divided over the threads of a block, and over blocks
// whose parts a further kernel combines, always in the same order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/columns_program.h"
#include "atunner/codegen/columns_text.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/plain_kernels.h"
#include "atunner/operators/graph_operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::NodeId;

std::optional<ColumnsProgram> ProgramOf(const KernelSpec& spec) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto graph = GraphOf(spec);
  return graph ? MakeColumnsProgram(*graph) : std::nullopt;
}

constexpr int64_t kHeldBytes = 384;  // of a thread, between passes
constexpr double kLaunchNs = 2500;   // of a kernel after another one

class ColumnsTemplate : public BoundTemplate {
 public:
  ColumnsTemplate(const KernelSpec& spec, const DeviceProfile& profile, ColumnsProgram program)
      : BoundTemplate(spec, profile), program_(std::move(program)) {
    MakeSpace();
  }

  Configuration Default() const override {
    std::vector<std::vector<Value>> ways;
    for (const Parameter& parameter : space_.parameters) ways.push_back(parameter.values);
    const auto way = [&](const char* name) -> std::vector<Value>& { return ways[space_.Find(name)]; };
    way("stream") = Integers({0});
    if (MayBeNarrow(program_.graph)) way("functions").resize(1);
    const std::vector<Value> rings = std::exchange(way("ring"), Integers({0}));
    const Configuration without = CheapestOf(ways);
    if (rings.size() == 1) return without;
    way("together") = way("hold") = Integers({0});
    way("unroll") = Integers({4});
    way("ring") = {rings.begin() + 1, rings.end()};
    const Configuration with = CheapestOf(ways);
    if (with.values.empty()) return without;
    return without.values.empty() || *Cost(with, profile_) < *Cost(without, profile_) ? with : without;
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const int64_t vector = integer("vector");
    const ColumnsSchedule schedule = ScheduleOf(configuration);
    ConstantBlock constants;
    constants.Int("VEC", vector, "neighbouring elements that a thread moves at once")
        .Int("LANES", program_.kept_inside ? vector : 1, "kept elements of a thread")
        .Int("KEPT_THREADS", integer("kept_threads"), "threads beside each other along what is kept")
        .Int("REDUCED_THREADS", integer("reduced_threads"), "threads that divide what is reduced")
        .Int("SPLITS", integer("splits"), "blocks that divide what is reduced")
        .Bool("KEPT_INSIDE", program_.kept_inside, "neighbours in memory are kept, not reduced")
        .Line(fmt::format("constexpr long long STEPS = {};  // {} to reduce", Steps(vector),
                          program_.kept_inside || vector == 1 ? "elements" : "vectors"))
        .Bool("STREAM", integer("stream") != 0, "evict-first loads and stores");
    if (integer("together") != 0 || integer("ring") > 0)
      constants.Int("BLOCKS_PER_SM", BlocksPerSm(configuration), "that run at once");
    if (integer("ring") > 0) constants.Int("RING", integer("ring"), "strips of a block in shared memory");
    SourceUnit source =
        GraphSource(spec_, "reductions over any axes", space_.Describe(configuration), constants,
                    fmt::format("{}{}\n{}\n{}\n{}", schedule.narrow ? embed::kNarrowCuh : "", embed::kVectorCuh,
                                embed::kCombineCuh, embed::kColumnsCuh, ColumnsText(program_, spec_, schedule)));
    return RenderedKernel{std::move(source), PlanOf(configuration)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t kept = graph::ElementCount(program_.Part(false)).factor();  // for each unit of the open size
    const int64_t several =
        2 * GetInt(space_, configuration, "kept_threads") * GetInt(space_, configuration, "vector") / kept + 1;
    return CheckSizes(spec_, program_.graph, several, 200000 / (Reduced() * kept));
  }

  SizeFreedom FreeSizes(const Configuration&) const override {
    if (spec_.dims.size() != 1) return {};
    const auto& [name, most] = *spec_.dims.begin();
    return {
        {name},
        {{Expr::MustParse(fmt::format("{} <= {}", name, most)), "elements of more may not be numbered by 32 bits"}}};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return static_cast<double>(GetInt(space_, configuration, name)); };
    const double vector = integer("vector");
    const double threads = integer("kept_threads") * integer("reduced_threads");
    const double lanes = program_.kept_inside ? vector : 1;
    const double strips = std::ceil(Kept() / (integer("kept_threads") * lanes));
    const double used = Kept() / (strips * integer("kept_threads") * lanes);
    const double blocks = strips * integer("splits");
    const double steps = std::max(1.0, static_cast<double>(Steps(GetInt(space_, configuration, "vector"))) /
                                           (integer("splits") * integer("reduced_threads")));
    // Neighbouring threads should touch whole lines, and enough bytes be under way on every multiprocessor.
    const double line =
        (program_.kept_inside ? integer("kept_threads") : integer("reduced_threads")) * vector * Narrowest();
    const double broken = line >= 64 ? 1.0 : line >= 32 ? 1.1 : std::min(4.0, 64 / line);
    const double width = vector * Narrowest();
    const double narrow = width >= 8 ? 1.0 : width >= 4 ? 1.1 : 1.4;
    const double resident = std::min(blocks * threads * used, profile.sms * 1536.0);
    if (integer("ring") > 0) return RingCost(configuration, profile, strips, steps * vector, broken * narrow);
    const double flight =
        resident * (integer("hold") > 0 ? steps : std::min(integer("unroll"), steps)) * vector * Narrowest();
    const double idle = std::max(1.0, profile.sms * 49152.0 / flight);
    const double waves = blocks / (profile.sms * std::max(1.0, std::floor(1536 / threads)));
    const double tail = waves > 1 && integer("together") == 0 ? std::ceil(waves) / waves : 1.0;
    // Blocks that hold their elements load, compute and write in turn: only others fill the pauses.
    const double registers = 56 + steps * vector * static_cast<double>(ReadBytes()) / 2;
    const double turns = integer("hold") > 0 ? 1 + 1.3 / std::max(1.0, std::floor(65536 / (registers * threads))) : 1.0;
    const double passes = Passes(configuration, profile);
    const double bytes =
        MinimumBytes(spec_, spec_.dims).value_or(0) * (program_.element_outputs.empty() ? passes : (passes + 1) / 2);
    const double kernels = integer("splits") == 1 ? 1 : integer("together") > 0 ? 2 : program_.pass_count + 1;
    const double parts = integer("splits") > 1 ? integer("splits") * Kept() * 8.0 * kernels : 0;
    const double overhead =
        1 + 0.02 * (integer("reduced_threads") * 4 / steps) + (vector * Narrowest() > 16 ? 0.02 : 0);
    return (bytes * broken * narrow * idle * tail * overhead * turns + parts) / profile.dram_gbps + kernels * kLaunchNs;
  }

 private:
  /// Blocks whose copies go on while they measure and write: a turn takes its traffic, or the way of one block through
  /// barriers and, where blocks share a strip, through the words by which they meet.
  double RingCost(const Configuration& configuration, const DeviceProfile& profile, double strips, double elements,
                  double waste) const {
    const auto integer = [&](const char* name) { return static_cast<double>(GetInt(space_, configuration, name)); };
    const double threads = integer("kept_threads") * integer("reduced_threads");
    const double lanes = program_.kept_inside ? integer("vector") : 1;
    const double splits = integer("splits");
    const auto blocks = static_cast<double>(BlocksPerSm(configuration));
    const double bytes = elements * threads * static_cast<double>(held_bytes_);  // of a block
    const double parts = splits > 1 ? splits * integer("kept_threads") * lanes * 8.0 : 0;
    const double traffic =
        (bytes * (program_.element_outputs.empty() ? 1 : 2) + parts) * profile.sms / profile.dram_gbps;
    const double chain =
        (300 + 60 * std::log2(integer("reduced_threads"))) * program_.pass_count + (splits > 1 ? 600 + 2 * splits : 0);
    const double ahead = bytes * blocks * (integer("ring") - (splits > 1 ? 2 : 1));
    const double compute = elements * 8 * static_cast<double>(Readings()) / 128 / profile.clock_ghz *
                           std::max(threads * blocks, 1024.0);  // few warps leave issue slots unused
    const double shared = std::max(traffic * blocks * std::max(1.0, 65536 / ahead), compute);
    const double turn = std::pow(std::pow(shared, 4) + std::pow(chain + traffic, 4), 0.25);
    const double turns = 1 + std::ceil(strips / std::max<double>(1, static_cast<double>(Groups(configuration))));
    const double narrow = integer("vector") * static_cast<double>(least_held_) < 16 ? 1.03 : 1.0;
    return turns * turn * waste * narrow + (splits > 1 ? 2 : 1) * kLaunchNs;
  }

  int64_t Reduced() const { return graph::ElementCount(program_.Part(true)).factor(); }
  double Kept() const {
    return static_cast<double>(graph::ElementCount(program_.Part(false)).Bound(spec_.dims).factor());
  }
  ColumnsSchedule ScheduleOf(const Configuration& configuration) const {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    return {integer("vector"),
            integer("splits"),
            integer("unroll"),
            integer("together") != 0,
            integer("hold") != 0,
            integer("ring"),
            IsNarrow(program_.graph, space_, configuration)};
  }
  int64_t BlocksPerSm(const Configuration& configuration) const { return Evaluate(BlocksText(), configuration); }
  int64_t Evaluate(const std::string& text, const Configuration& configuration) const {
    const std::vector<std::string> names = space_.Names();
    Bindings bindings;
    bindings.Add(names, configuration.values);
    return Expr::MustParse(text).EvaluateInt(bindings).value();
  }
  /// Over the parameters: blocks that run at once on a multiprocessor where they go on from strip to strip.
  std::string BlocksText() const {
    return fmt::format("min(1024 // (kept_threads * reduced_threads), {} // max(1, {}))", profile_.shared_per_sm,
                       SharedText());
  }
  /// Over the parameters: the strips of a block in shared memory.
  std::string RingText() const {
    return fmt::format(
        "ring * ceil_div(ceil_div({}, splits), reduced_threads) * kept_threads * reduced_threads * vector * {}",
        StepsText(), held_bytes_);
  }
  /// Over the parameters: all shared memory of a block that goes on from strip to strip, else 0.
  std::string SharedText() const {
    size_t bytes = 0;  // of a thread and lane, each kind of reduction its own
    for (const ColumnsPartial& partial : PartialsOf(program_)) bytes += partial.bytes;
    return fmt::format("(ring > 0) * ({} + kept_threads * reduced_threads * {} * {} + 1024)", RingText(),
                       program_.kept_inside ? "vector" : "1", bytes);
  }
  std::string StepsText() const { return fmt::format("{}{}", Reduced(), program_.kept_inside ? "" : " // vector"); }
  /// Strips that are worked on at once where blocks wait for each other.
  int64_t Groups(const Configuration& configuration) const {
    return profile_.sms * BlocksPerSm(configuration) / GetInt(space_, configuration, "splits");
  }
  /// How many times the elements come from memory, or nearly so.
  double Passes(const Configuration& configuration, const DeviceProfile& profile) const {
    const auto integer = [&](const char* name) { return static_cast<double>(GetInt(space_, configuration, name)); };
    if (integer("hold") > 0) return 1;
    const auto readings = static_cast<double>(Readings());
    if (integer("together") == 0) return readings;
    const double strip = integer("kept_threads") * (program_.kept_inside ? integer("vector") : 1) *
                         static_cast<double>(Reduced() * ReadBytes());
    const double under_way = strip * static_cast<double>(Groups(configuration));
    return under_way < 0.5 * static_cast<double>(profile.l2_bytes) ? 1 + 0.3 * (readings - 1) : readings;
  }
  /// Passes over the elements.
  int64_t Readings() const { return program_.pass_count + (program_.element_outputs.empty() ? 0 : 1); }
  /// Of one element of the space, in all inputs.
  int64_t ReadBytes() const {
    int64_t bytes = 0;
    for (const ArgSpec& arg : spec_.args) {
      if (arg.role == Role::kInput) bytes += static_cast<int64_t>(SizeOf(arg.dtype));
    }
    return bytes;
  }
  int64_t Steps(int64_t vector) const { return program_.kept_inside ? Reduced() : Reduced() / vector; }
  double Narrowest() const {
    size_t narrowest = 8;
    for (const ArgSpec& arg : spec_.args) {
      if (arg.role == Role::kInput) narrowest = std::min(narrowest, SizeOf(arg.dtype));
    }
    return static_cast<double>(narrowest);
  }

  void MakeSpace() {
    size_t widest = 1;
    for (const ArgSpec& arg : spec_.args) widest = std::max(widest, SizeOf(arg.dtype));
    const int inner = program_.InnerAxis();
    const int64_t extent = inner < 0 ? 1 : program_.space[inner].factor();
    std::vector<Value> vectors;
    for (int64_t v = 1; v <= 16 && v * static_cast<int64_t>(widest) <= 32 && extent % v == 0; v *= 2)
      vectors.emplace_back(v);
    space_.parameters = {
        {"kept_threads", Integers({1, 4, 8, 16, 32, 64, 128, 256}), "threads beside each other along what is kept"},
        {"reduced_threads", Integers({1, 4, 8, 16, 32, 64, 256, 512}), "threads that divide what is reduced"},
        {"vector", vectors, "neighbouring elements that a thread moves at once"},
        {"splits", Integers({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}), "blocks that divide what is reduced"},
        {"together", Readings() > 1 ? Integers({0, 1}) : Integers({0}),
         "blocks that divide what is reduced wait for each other, in one kernel, and find it in L2 again"},
        {"unroll", Integers({1, 4, 8}), "steps of the loop whose loads are in flight together"},
        {"hold", Readings() > 1 ? Integers({0, 1}) : Integers({0}),
         "a thread's elements stay in registers between passes"},
        {"stream", Integers({0, 1}), "evict-first loads and stores"},
        {"ring", Rings(), "strips of a block in shared memory, copied there before their turn; 0 = none"},
    };
    AddFunctions(program_.graph, space_);
    AddRing();
    Add("kept_threads * reduced_threads <= 512 and kept_threads * reduced_threads >= 64", "2 to 16 warps");
    Add(fmt::format(
            "kept_threads * {} < 2 * {:.0f} or kept_threads == 1 or (kept_threads == 64 and reduced_threads == 1)",
            program_.kept_inside ? "vector" : "1", Kept()),
        "more threads than kept elements");
    const std::string steps = StepsText();
    Add(fmt::format("reduced_threads == 1 or reduced_threads * splits < 2 * ({})", steps), "more threads than steps");
    Add(fmt::format("splits == 1 or splits <= ({})", steps), "more blocks than steps");
    // Long chains of additions lose what a plain sum of 256 of them keeps.
    Add(fmt::format("{} <= reduced_threads * splits * max(256, {} // 64)", Reduced(), Reduced()),
        "sums in one long chain");
    Add(fmt::format("together == 0 or (splits > 1 and splits <= {} * (1024 // (kept_threads * reduced_threads)))",
                    profile_.sms),
        "all blocks that wait for each other run at once");
    const int64_t kept = graph::ElementCount(program_.Part(false)).factor();  // a whole multiple of this
    Add(fmt::format("hold == 0 or (splits == 1 and stream == 0 and unroll == 1 and ({0}) % reduced_threads == 0 and "
                    "({0}) // reduced_threads * vector * {1} <= {2} and {3} % (kept_threads * {4}) == 0)",
                    steps, ReadBytes(), kHeldBytes, kept, program_.kept_inside ? "vector" : "1"),
        "a thread holds few elements, none of them beyond an end");
    Add("unroll * vector <= 32", "what is in flight takes registers");
    size_t bytes = 0;  // of shared memory for each thread and lane, each kind of reduction its own
    for (const ColumnsPartial& partial : PartialsOf(program_)) bytes += partial.bytes;
    Add(fmt::format("reduced_threads == 1 or kept_threads * reduced_threads * {} * {} <= 49152",
                    program_.kept_inside ? "vector" : "1", std::min<size_t>(bytes, 48)),
        "partial results exceed shared memory");
  }

  std::vector<Value> Rings() {
    for (NodeId id : program_.WholeInputs()) {
      const auto bytes = static_cast<int64_t>(SizeOf(program_.graph.node(id).type.dtype));
      held_bytes_ += bytes;
      least_held_ = std::min(least_held_, bytes);
    }
    const bool possible =
        Readings() > 1 && held_bytes_ > 0 && profile_.cc_major >= 8 && ColumnsCanBeWritten(program_, {.ring = 2});
    return possible ? Integers({0, 2, 3, 4}) : Integers({0});
  }
  void AddRing() {
    Add(fmt::format("ring == 0 or (together == 0 and hold == 0 and unroll == 4 and vector * {} >= 4)", least_held_),
        "strips in shared memory are copied by 4, 8 or 16 bytes");
    Add(fmt::format("ring == 0 or splits == 1 or (ring > 2 and {} == 1)", program_.pass_count),
        "a strip of several blocks is written while the next one is measured");
    Add(fmt::format("{} <= {}", SharedText(), profile_.shared_per_block), "shared memory");
    Add(fmt::format("ring == 0 or splits <= {} * {}", profile_.sms, BlocksText()),
        "all blocks that wait for each other run at once");
  }

  LaunchPlan PlanOf(const Configuration& configuration) const {
    const ColumnsSchedule schedule = ScheduleOf(configuration);
    const std::string kept = graph::ElementCount(program_.Part(false)).ToString();
    const std::string strips =
        fmt::format("ceil_div({}, kept_threads * {})", kept, program_.kept_inside ? "vector" : "1");
    std::vector<LaunchStep> steps;
    const std::string counters = fmt::format("{} * {}", strips, program_.pass_count);
    const bool tells = schedule.ring > 0 && schedule.splits > 1;
    const bool waits = schedule.together || tells;
    const bool goes_on = schedule.together || schedule.ring > 0;
    const auto words = [&](const ColumnsPartial& partial) {  // of what blocks tell each other, each with a sign
      return fmt::format("{} * {} * {}", schedule.splits, (tells ? 2 : 1) * partial.bytes, kept);
    };
    if (schedule.together) steps.push_back(Clear("arrived", counters));
    for (const ColumnsPartial& partial : tells ? PartialsOf(program_) : std::vector<ColumnsPartial>{})
      steps.push_back(Clear(partial.name, words(partial) + " // 4"));
    for (const std::string& name : ColumnsKernels(program_, schedule)) {
      LaunchStep step;
      step.entry = name;
      step.cooperative = waits;
      step.shared_bytes = Expr::MustParse(RingText());
      step.grid[0] = Expr::MustParse(goes_on ? fmt::format("min({}, {})", strips, Groups(configuration)) : strips);
      // What only writes values per kept element takes no share of the reduced ones.
      const bool divided = name != "finish" || !program_.element_outputs.empty();
      step.grid[1] = Expr::MustParse(divided ? "splits" : "1");
      step.block[0] = Expr::MustParse("kept_threads * reduced_threads");
      BindParameters(spec_, step);
      if (schedule.splits > 1) {
        for (const ColumnsPartial& partial : PartialsOf(program_))
          step.args.push_back(ArgBinding::Workspace(partial.name));
      }
      if (schedule.together) step.args.push_back(ArgBinding::Workspace("arrived"));
      steps.push_back(std::move(step));
    }
    LaunchPlan plan = Plan(configuration, std::move(steps));
    if (schedule.splits > 1) {
      for (const ColumnsPartial& partial : PartialsOf(program_))
        plan.workspaces.push_back({partial.name, Expr::MustParse(words(partial))});
    }
    if (schedule.together) plan.workspaces.push_back({"arrived", Expr::MustParse(counters + " * 4")});
    return plan;
  }
  /// Nobody has come to any of the places where blocks meet.
  static LaunchStep Clear(const std::string& workspace, const std::string& counters) {
    LaunchStep step;
    step.entry = "nobody_arrived";
    step.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, 256)", counters));
    step.block[0] = Expr(256);
    step.args = {ArgBinding::Workspace(workspace), ArgBinding::Scalar(DType::kInt64, Expr::MustParse(counters))};
    return step;
  }

  ColumnsProgram program_;
  int64_t held_bytes_ = 0;  ///< of one element of the space, in the inputs that have all of them
  int64_t least_held_ = 8;  ///< of one such input
};

}  // namespace

const Family& ColumnsFamily() {
  static const FormFamily<ColumnsTemplate, ProgramOf> family("columns");
  return family;
}

}  // namespace atunner
