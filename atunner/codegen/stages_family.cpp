// Stages: graphs that none of the other families computes at once, one part after the other: losses of rows and their
// totals, norms over all that every element needs, products behind products. Each part is a graph of its own, which
// another family schedules; the one that should take longest is tuned, the others run as their families would begin.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "atunner/graph/divide.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/rewrite.h"
#include "atunner/model/accuracy.h"
#include "atunner/model/divided_schedule.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

using graph::ValidGraph;

const Family* FamilyOf(const KernelSpec& part) {
  for (const Family* family : AllFamilies()) {
    if (family != &kStagesFamily && family->Match(part)) return family;
  }
  return nullptr;
}

int64_t CountOf(const ValidGraph& part, graph::NodeId id) {
  return graph::ElementCount(part.node(id).type.shape).factor();
}

/// No family but those of the library's own tasks has more of these in a kernel than one, or `products`.
bool HasOneOfAKind(const ValidGraph& part, int64_t products) {
  const auto count = [&](const auto& is) { return std::ranges::count_if(part.nodes(), is); };
  const auto contracts = count([](const graph::Node& node) { return node.As<graph::Contract>() != nullptr; });
  const auto others = count([](const graph::Node& node) {
    return node.As<graph::Scan>() || node.As<graph::Sort>() || node.As<graph::Scatter>();
  });
  return others == 0 ? contracts <= products : others == 1 && contracts == 0;
}

/// Columns lay blocks out for what is reduced: not where that is little beside what the part writes.
bool ReducesLittle(const ValidGraph& part) {
  int64_t written = 0;
  for (const graph::Output& output : part.outputs()) written = std::max(written, CountOf(part, output.node));
  return std::ranges::any_of(part.nodes(), [&](const graph::Node& node) {
    return node.As<graph::Reduce>() && CountOf(part, node.operands[0]) * 8 < written;
  });
}

/// In bytes of memory: what the part reads and writes, as many more as a launch of two microseconds could move, and an
/// eighth of what each element reads again from caches where nothing is kept.
std::optional<double> CostOf(const ValidGraph& part, double most, int64_t products) {
  constexpr double kLaunch = 8e6;
  const auto bytes = [&](graph::NodeId id) { return Real(CountOf(part, id) * SizeOf(part.node(id).type.dtype)); };
  double all = 0, read = 0;
  for (graph::NodeId id : part.inputs()) all += bytes(id);
  for (const graph::Output& output : part.outputs()) {
    all += bytes(output.node);
    read += graph::ElementText::Serves(part, output.node).work * bytes(output.node);
  }
  if (kLaunch + all >= most || !HasOneOfAKind(part, products)) return std::nullopt;
  const auto spec = SpecOfGraph(part, {});
  const Family* family = spec ? FamilyOf(*spec) : nullptr;
  if (family == nullptr || (family == &kColumnsFamily && ReducesLittle(part))) return std::nullopt;
  const bool again = family == &kElementsFamily && read > all;
  return kLaunch + all + (again ? (read - all) / 8 : 0);
}

/// `products`: of one operand that a part may have.
std::optional<std::vector<KernelSpec>> StagesOf(const KernelSpec& spec, int64_t products) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto given = GraphOf(spec);
  const auto sized = given ? graph::Specialise(*given, spec.dims) : given;
  if (!sized) return std::nullopt;
  const ValidGraph graph = graph::FuseMaps(graph::WithMatrixProducts(graph::WithoutSingleUpdates(*sized)));
  const auto parts =
      graph::Divide(graph, [&](const ValidGraph& part, double most) { return CostOf(part, most, products); });
  if (!parts) return std::nullopt;
  std::vector<KernelSpec> stages;
  for (const ValidGraph& part : *parts) {
    stages.push_back(SpecOfGraph(part, {}).value());
    SetAccuracy(stages.back(), AccuracyOf(spec));
  }
  return stages;
}

/// A stage as a task of its own, whose kernels have the same parameters; nullptr where other names make another task.
std::unique_ptr<ScheduleTemplate> PartOf(const ScheduleTemplate& stage, const DeviceProfile& profile) {
  KernelSpec alone = SpecOfGraph(graph::WithoutNames(GraphOf(stage.spec()).value()), {}).value();
  alone.attributes = stage.spec().attributes;
  auto part = MakeTemplate(alone, profile);
  const bool same = part && (*part)->space().Names() == stage.space().Names() &&
                    (*part)->space().CartesianSize() == stage.space().CartesianSize();
  return same ? *std::move(part) : nullptr;
}

class StagesTemplate : public BoundTemplate, public DividedSchedule {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile,
                 std::vector<std::unique_ptr<ScheduleTemplate>> stages)
      : BoundTemplate(spec, profile), stages_(std::move(stages)) {
    for (const auto& stage : stages_) {
      auto part = PartOf(*stage, profile);
      const ScheduleTemplate& task = part ? *part : *stage;
      const auto known = std::ranges::find_if(parts_, [&](const ScheduleTemplate* one) {
        return one->spec().ContentDigest() == task.spec().ContentDigest();
      });
      part_of_.push_back(static_cast<size_t>(known - parts_.begin()));
      if (known != parts_.end()) continue;
      parts_.push_back(&task);
      if (part) alone_.push_back(std::move(part));
    }
    // In ns, by memory's and tensor cores' peaks.
    const auto least_time = [&](const auto& stage) {
      const double flops = FlopCount(stage->spec(), {}).value_or(0);
      return std::max(MinimumBytes(stage->spec(), {}).value_or(0) / profile.dram_gbps,
                      flops / (2 * profile.tensor_fp16_fma_per_clk * profile.sms * profile.clock_ghz));
    };
    main_ = static_cast<size_t>(std::ranges::max_element(stages_, {}, least_time) - stages_.begin());
    space_ = stages_[main_]->space();
  }

  Configuration Default() const override { return stages_[main_]->Default(); }
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    return stages_[main_]->Cost(configuration, profile);
  }

  std::vector<const ScheduleTemplate*> Parts() const override { return parts_; }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    std::vector<Configuration> all;
    for (const ScheduleTemplate* part : parts_) all.push_back(part->Default());
    all[part_of_[main_]] = configuration;
    ATUNNER_TRY(RenderedKernel kernel, RenderParts(all));
    kernel.plan.parameter_names = space_.Names();
    kernel.plan.parameter_values = configuration.values;
    return kernel;
  }

  /// Every stage's source in a namespace of its own, since helpers are written for constants in front of them.
  Result<RenderedKernel> RenderParts(const std::vector<Configuration>& configurations) const override {
    RenderedKernel all;
    std::set<std::string> includes;
    std::string text;
    for (size_t i = 0; i < stages_.size(); ++i) {
      for (const ArgSpec& arg : stages_[i]->spec().args) {
        if (arg.role == Role::kOutput && !IsArgument(arg.name)) all.plan.workspaces.push_back({arg.name, BytesOf(arg)});
      }
      ATUNNER_TRY(RenderedKernel stage, stages_[i]->Render(configurations[part_of_[i]]));
      const std::string name = fmt::format("stage{}", i + 1);
      // Whatever namespace they are in, kernels need names that no other stage has, also those that are not launched.
      std::string names, uses;
      for (const std::string& entry : EntriesOf(stage.plan)) uses += fmt::format("using {}::{};\n", name, entry);
      for (const std::string& kernel : KernelsOf(stage.source.text, overlaps())) {
        names += fmt::format("#define {1} {0}_{1}\n", name, kernel);
        uses += fmt::format("#undef {}\n", kernel);
      }
      const std::string body = WithoutIncludes(stage.source.text, includes);
      text += fmt::format("\n{}namespace {} {{\n{}}}\n{}", names, name, body, uses);
      ATUNNER_RETURN_IF_ERROR(Append(std::move(stage.plan), name, all.plan));
    }
    all.source.name = spec_.name + ".cu";
    for (const std::string& include : includes) all.source.text += include + "\n";
    all.source.text += text;
    return all;
  }

 private:
  /// May a stage's blocks start while those of the stage before end?
  bool overlaps() const { return profile_.cc_major >= 9; }
  /// With `waits` each of them gets to wait for the launch before it, first of all.
  static std::set<std::string> KernelsOf(std::string& source, bool waits) {
    static const std::regex kernel(R"(extern "C" __global__ void\s+(?:__launch_bounds__\([^()]*\)\s+)?(\w+)\()");
    std::set<std::string> names;
    std::smatch found;
    for (size_t at = 0; std::regex_search(source.cbegin() + at, source.cend(), found, kernel);) {
      names.insert(found[1].str());
      at = source.find('{', at + found.position() + found.length());
      if (waits)
        source.insert(at + 1,
                      "\n  asm volatile(\"griddepcontrol.launch_dependents;\\ngriddepcontrol.wait;\" ::: \"memory\");");
    }
    return names;
  }
  static std::string WithoutIncludes(const std::string& source, std::set<std::string>& includes) {
    std::string text;
    std::istringstream lines(source);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#include"))
        includes.insert(line);
      else
        text += line + "\n";
    }
    return text;
  }

  bool IsArgument(const std::string& name) const { return spec_.FindArg(name) != nullptr; }
  /// Room for what a stage leaves for another.
  static Expr BytesOf(const ArgSpec& arg) {
    std::string bytes = std::to_string(SizeOf(arg.dtype));
    for (const Expr& extent : arg.shape) bytes += " * (" + extent.text() + ")";
    return Expr::MustParse(bytes);
  }

  /// Adds a stage's launches, with its sizes as numbers.
  Status Append(LaunchPlan stage, const std::string& name, LaunchPlan& plan) const {
    Bindings known;
    known.Add(stage.parameter_names, stage.parameter_values);
    const auto fix = [&](Expr& size) -> Status {
      ATUNNER_TRY(const Value value, size.Evaluate(known));
      const auto* real = std::get_if<double>(&value);
      size = Expr::MustParse(real ? fmt::format("{:.17g}", *real) : ToString(value));
      return {};
    };
    for (Workspace& workspace : stage.workspaces) {
      ATUNNER_RETURN_IF_ERROR(fix(workspace.bytes));
      plan.workspaces.push_back({name + "_" + workspace.name, workspace.bytes});
    }
    for (LaunchStep& step : stage.steps) {
      for (auto* sizes : {&step.grid, &step.block, &step.cluster}) {
        for (Expr& size : *sizes) ATUNNER_RETURN_IF_ERROR(fix(size));
      }
      ATUNNER_RETURN_IF_ERROR(fix(step.shared_bytes));
      for (ArgBinding& arg : step.args) {
        ATUNNER_RETURN_IF_ERROR(fix(arg.value));
        for (auto* sizes : {&arg.view.dims, &arg.view.strides, &arg.view.box}) {
          for (Expr& size : *sizes) ATUNNER_RETURN_IF_ERROR(fix(size));
        }
        ATUNNER_RETURN_IF_ERROR(fix(arg.view.swizzle_bytes));
        Rename(arg, name);
      }
      step.entry = name + "_" + step.entry;
      step.programmatic = overlaps() && !step.cooperative && !plan.steps.empty();
      plan.steps.push_back(std::move(step));
    }
    return {};
  }

  /// As the whole plan calls what a stage's plan calls by a name of its own, or takes for an argument.
  void Rename(ArgBinding& arg, const std::string& stage) const {
    if (InWorkspace(arg.kind)) arg.name = stage + "_" + arg.name;
    if (arg.kind == ArgBinding::Kind::kTensor && !IsArgument(arg.name)) arg.kind = ArgBinding::Kind::kWorkspace;
    if (arg.kind == ArgBinding::Kind::kTensorMap && !IsArgument(arg.name)) arg.kind = ArgBinding::Kind::kWorkspaceMap;
  }

  std::vector<std::unique_ptr<ScheduleTemplate>> stages_, alone_;
  std::vector<const ScheduleTemplate*> parts_;
  std::vector<size_t> part_of_;  ///< each stage's
  size_t main_ = 0;
};

Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  std::vector<std::unique_ptr<ScheduleTemplate>> bound;
  const std::vector<KernelSpec> stages = StagesOf(spec, profile.cc_major == 9 ? 2 : 1).value();
  for (const KernelSpec& stage : stages) {
    ATUNNER_TRY(auto each, MakeTemplate(stage, profile));
    bound.push_back(std::move(each));
  }
  return std::make_unique<StagesTemplate>(spec, profile, std::move(bound));
}

}  // namespace

constinit const Family kStagesFamily{"stages", [](const KernelSpec& spec) { return StagesOf(spec, 1).has_value(); },
                                     Bind};

}  // namespace atunner
