#include "atunner/intake/bare/bare_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "atunner/intake/bare/source_tunables.h"
#include "atunner/intake/check_sizes.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/expression_text.h"
#include "atunner/intake/rewrite/macro_launches.h"

namespace atunner {
namespace {

constexpr int64_t kLargestBlock = 1024;
// Elements of all buffers at a check size: well under a second on the virtual GPU.
constexpr int64_t kCheckElements = 40'000;
constexpr int64_t kMostCheckElements = 1'000'000;  // if the grid allows no fewer: some seconds
constexpr int64_t kSmallestHalved = 64;

/// True if no division of sizes in a grid expression leaves a remainder, e.g. n // 256 with n =
/// 4096. A kernel whose grid is n // 256 relies on that. (n + 255) // 256 rounds up and need not,
/// but its kernel may still rely on it: with `sums` the size that is rounded up must be a multiple
/// too.
bool DividesEvenly(const Expr::Node& node, const Bindings& bindings, bool sums) {
  const bool ceils = sums && node.kind == Expr::Node::Kind::kCall && node.op == "ceil_div" &&
                     node.children.size() == 2;
  if (ceils || (node.kind == Expr::Node::Kind::kBinary && node.op == "//")) {
    const auto sizes = WholeOf(node.children[0], bindings, sums),
               by = WholeOf(node.children[1], bindings, sums);
    const bool rounds = !ceils && (node.children[0].op == "+" || node.children[0].op == "-");
    const bool even = sizes && by && *by != 0 &&
                      (*sizes % *by == 0 || (rounds && *sizes % *by == *by - 1));
    if (sizes && by && !even) return false;
  }
  return std::ranges::all_of(
      node.children, [&](const auto& child) { return DividesEvenly(child, bindings, sums); });
}

/// Makes the UserKernel of the reading and the tunables.
class Assembler {
 public:
  Assembler(const SourceReading& reading, SourceTunables found)
      : in_(reading), launch_(std::move(found.launch)), fixed_(std::move(found.fixed)) {
    out_.space = std::move(found.space);
    out_.injections = std::move(found.injections);
    out_.initial = std::move(found.initial);
    out_.notes = in_.notes;
    out_.notes.insert(out_.notes.end(), found.notes.begin(), found.notes.end());
  }

  Result<UserKernel> Run() {
    ATUNNER_RETURN_IF_ERROR(MakeSpec());
    out_.source = {.name = in_.file, .text = DeviceText(in_.syntax), .options = in_.stated.options};
    ATUNNER_RETURN_IF_ERROR(MakePlan());
    ATUNNER_RETURN_IF_ERROR(AddConstraints());
    ATUNNER_RETURN_IF_ERROR(AddChecks());
    if (in_.stated.checks.empty()) DeriveCheck();
    return std::move(out_);
  }

 private:
  Result<Expr> Parse(const std::string& what, const std::string& text) const {
    auto expr = Expr::Parse(text);
    if (!expr) return Invalid(what + ": " + expr.error().what, in_.Where());
    return *std::move(expr);
  }

  Status MakeSpec() {
    KernelSpec& spec = out_.spec;
    spec.name = in_.kernel->name;
    spec.dims = in_.SizesBeside(out_.space);
    spec.args = in_.tensors;
    spec.tolerance = in_.stated.tolerance;
    // Buffers may be larger than the part that the kernel touches, so no minimum traffic is
    // claimed.
    spec.bytes = Expr(0);
    if (!in_.stated.bytes.empty()) {
      ATUNNER_TRY(spec.bytes, Parse("bytes", in_.stated.bytes));
    }
    if (!in_.stated.flops.empty()) {
      ATUNNER_TRY(spec.flops, Parse("flops", in_.stated.flops));
    }
    return {};
  }

  Status MakePlan() {
    LaunchStep step;
    step.entry = Entry();
    for (size_t axis = 0; axis < 3; ++axis) {
      ATUNNER_TRY(step.grid[axis], Parse("grid", launch_.grid[axis]));
      ATUNNER_TRY(step.block[axis], Parse("block", launch_.block[axis]));
      ATUNNER_TRY(step.cluster[axis], Parse("cluster", launch_.cluster[axis]));
    }
    ATUNNER_TRY(step.shared_bytes, Parse("shared", launch_.shared));
    step.args = in_.bindings;
    step.cooperative = in_.source_launch != nullptr && in_.source_launch->cooperative;
    out_.plan.symbols = in_.symbols;
    out_.plan.steps.push_back(std::move(step));
    return {};
  }

  /// True if every grid that divides the task's sizes without remainder also divides `dims` so, for
  /// each value of each parameter.
  bool GridsStayEven(const Dims& dims) const {
    const std::vector<std::string> names = out_.space.Names();
    const auto stay = [&](const Configuration& one, bool sums) {
      return std::ranges::all_of(out_.plan.steps[0].grid, [&](const Expr& grid) {
        return !DividesEvenly(grid.root(), Bindings(out_.spec.dims).Add(names, one.values), sums) ||
               DividesEvenly(grid.root(), Bindings(dims).Add(names, one.values), sums);
      });
    };
    if (!stay(out_.initial, /*sums=*/false) || !stay(out_.initial, /*sums=*/true)) return false;
    for (size_t i = 0; i < names.size(); ++i) {
      Configuration one = out_.initial;
      for (const Value& value : out_.space.parameters[i].values) {
        one.values[i] = value;
        if (!stay(one, /*sums=*/false)) return false;
      }
    }
    return true;
  }

  /// True if the sizes can vary without another binary: all are known to the host alone.
  bool SizesAreFree() const {
    return std::ranges::all_of(out_.spec.dims, [&](const auto& pair) {
      const std::string& name = pair.first;
      const Leaf* leaf = in_.FindLeaf(name);
      return leaf && !leaf->of_file && !in_.used_in_symbols.contains(name) &&
             !fixed_.contains(name);
    });
  }

  /// True if each grid extent depends on a size, or the kernel strides by the grid. A kernel with a
  /// fixed grid may rely on one thread per element.
  bool GridsFollowSizes() const {
    for (size_t axis = 0; axis < 3; ++axis) {
      const bool follows = std::ranges::any_of(
          NamesOf(launch_.grid[axis]),
          [&](const std::string& name) { return out_.spec.dims.contains(name); });
      if (launch_.grid[axis] != "1" && !follows &&
          !(axis == 0 && StridesByGrid(in_.syntax, *in_.kernel)))
        return false;
    }
    return true;
  }

  int64_t ElementsAt(const Dims& dims) const {
    int64_t total = 0;
    for (const ArgSpec& arg : in_.tensors) {
      const auto shape = ShapeOf(arg, out_.spec, dims);
      total += shape ? shape->elements : 0;
    }
    return total;
  }

  /// Halves the largest size until the buffers have at most kCheckElements elements. A size stops
  /// when a grid would no longer divide it evenly. nullopt if a size would become smaller than 32.
  std::optional<Dims> HalvedSizes() const {
    Dims dims = out_.spec.dims;
    std::set<std::string> done = NumbersAlone(dims);
    while (ElementsAt(dims) > kCheckElements && done.size() < dims.size()) {
      const auto largest = std::ranges::max_element(
          dims, {}, [&](const auto& pair) { return done.contains(pair.first) ? 0 : pair.second; });
      if (largest->second < kSmallestHalved) return std::nullopt;
      const int64_t size = std::exchange(largest->second, largest->second / 2);
      if (GridsStayEven(dims)) continue;
      largest->second = size;
      done.insert(largest->first);
    }
    return dims;
  }

  /// Adds a small problem size that the same binary serves, so that the virtual GPU can verify it
  /// quickly.
  void DeriveCheck() {
    if (!SizesAreFree() || !GridsFollowSizes()) return;
    std::optional<Dims> halved = HalvedSizes();
    if (!halved || halved == out_.spec.dims) return;
    const int64_t elements = ElementsAt(*halved);
    if (elements == 0 || elements > kMostCheckElements) return;
    Dims dims = *std::move(halved);
    AddSmallerCheck(dims);
    std::string text;
    for (const auto& [name, value] : dims) {
      if (value != out_.spec.dims.at(name))
        text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
    }
    out_.notes.push_back("without a GPU, verified at " + text +
                         "; state another size with // atunner: check " + text);
    out_.check_dims.push_back(std::move(dims));
  }

  /// Adds a second size, which is half of the check size along its largest halved size.
  void AddSmallerCheck(Dims dims) {
    int64_t* largest = nullptr;
    for (auto& [name, value] : dims) {
      if (value != out_.spec.dims.at(name) && value >= kSmallestHalved &&
          (largest == nullptr || value > *largest))
        largest = &value;
    }
    if (largest == nullptr) return;
    *largest /= 2;
    if (GridsStayEven(dims)) out_.check_dims.push_back(std::move(dims));
  }

  /// Names that are floating-point arguments and no sizes, e.g. `scale` of `float scale = 255`:
  /// they are not halved.
  std::set<std::string> NumbersAlone(const Dims& dims) const {
    std::set<std::string> names;
    for (const ArgBinding& binding : in_.bindings) {
      if (binding.kind != ArgBinding::Kind::kScalar || !IsFloat(binding.dtype)) continue;
      for (const std::string& name : binding.value.Names()) {
        if (dims.contains(name) && !in_.used_in_sizes.contains(name)) names.insert(name);
      }
    }
    return names;
  }

  std::string Entry() const {
    std::string entry = in_.kernel->qualified;
    for (size_t i = 0; i < launch_.template_args.size(); ++i)
      entry += (i == 0 ? "<" : ", ") + launch_.template_args[i];
    return launch_.template_args.empty() ? entry : entry + ">";
  }

  Status AddConstraints() {
    const std::string threads = fmt::format("({}) * ({}) * ({})", launch_.block[0],
                                            launch_.block[1], launch_.block[2]);
    if (HasParameter(out_.space, threads)) {
      const std::string bound = LaunchBound(in_.syntax, *in_.kernel);
      const auto limit = LiteralOf(bound);
      ATUNNER_TRY(Expr most,
                  Parse("block", fmt::format("{} <= {}", threads, limit.value_or(kLargestBlock))));
      out_.space.constraints.push_back(
          {std::move(most), limit ? "__launch_bounds__" : "a block has at most 1024 threads"});
      ATUNNER_RETURN_IF_ERROR(AddLeastThreads(threads));
    }
    for (const std::string& text : in_.stated.constraints) {
      ATUNNER_TRY(Expr condition, Parse("constraint", text));
      out_.space.constraints.push_back({std::move(condition), ""});
    }
    return {};
  }

  /// At least a warp, or as few threads as the source has: its own block is the baseline.
  Status AddLeastThreads(const std::string& threads) {
    constexpr int64_t kWarp = 32;
    ATUNNER_TRY(const Expr count, Parse("block", threads));
    const std::vector<std::string> names = out_.space.Names();
    const auto now = count.EvaluateInt(Bindings(out_.spec.dims).Add(names, out_.initial.values));
    std::string text = fmt::format("{} >= {}", threads, kWarp);
    if (now && *now < kWarp) text += fmt::format(" or {} == {}", threads, *now);
    ATUNNER_TRY(Expr least, Parse("block", text));
    out_.space.constraints.push_back({std::move(least), "at least one warp"});
    return {};
  }

  Status AddChecks() {
    for (const Dims& stated : in_.stated.checks) {
      Dims dims = out_.spec.dims;
      for (const auto& [name, value] : stated) {
        const Leaf* leaf = in_.FindLeaf(name);
        if (!dims.contains(name))
          return Invalid("check: '" + name + "' is not a problem size", in_.Where());
        if ((leaf && leaf->of_file) || fixed_.contains(name))
          return Invalid(
              "check: '" + name + "' is a constant of the source, which one binary cannot vary",
              in_.Where());
        dims[name] = value;
      }
      out_.check_dims.push_back(std::move(dims));
    }
    return {};
  }

  const SourceReading& in_;
  LaunchText launch_;
  std::set<std::string, std::less<>> fixed_;
  UserKernel out_;
};

}  // namespace

Result<UserKernel> ParseBareSource(const std::string& text, const std::string& name,
                                   const SourceOptions& options) {
  ATUNNER_TRY(const std::unique_ptr<SourceReading> reading,
              ReadSource(text, name, options.kernel, options.sizes));
  ATUNNER_TRY(SourceTunables found,
              FindTunables(*reading, {options.extra_tunables, options.multiprocessors}));
  return Assembler(*reading, std::move(found)).Run();
}

std::vector<std::string> LaunchedKernels(const std::string& text) {
  const std::string expanded = WithLaunchesExpanded(text);
  const CudaSyntax syntax = ParseCuda(expanded);
  const auto stated = ParseAnnotations(syntax.lexed.annotations, "");
  std::vector<std::string> names;
  for (const KernelDefinition& kernel : syntax.kernels) {
    if ((stated && !stated->kernel.empty()) || FindLaunch(syntax, kernel) == nullptr) continue;
    if (std::ranges::find(names, kernel.qualified) == names.end())
      names.push_back(kernel.qualified);
  }
  return names;
}

}  // namespace atunner
