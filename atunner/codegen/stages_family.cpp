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

/// No family but those of the library's own tasks has two of these in a kernel.
bool HasOneOfAKind(const ValidGraph& part) {
  return std::ranges::count_if(part.nodes(), [](const graph::Node& node) {
           return node.As<graph::Contract>() || node.As<graph::Scan>() || node.As<graph::Sort>() ||
                  node.As<graph::Scatter>();
         }) <= 1;
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
std::optional<double> CostOf(const ValidGraph& part, double most) {
  constexpr double kLaunch = 8e6;
  const auto bytes = [&](graph::NodeId id) { return Real(CountOf(part, id) * SizeOf(part.node(id).type.dtype)); };
  double all = 0, read = 0;
  for (graph::NodeId id : part.inputs()) all += bytes(id);
  for (const graph::Output& output : part.outputs()) {
    all += bytes(output.node);
    read += graph::ElementText::Serves(part, output.node).work * bytes(output.node);
  }
  if (kLaunch + all >= most || !HasOneOfAKind(part)) return std::nullopt;
  const auto spec = SpecOfGraph(part, {});
  const Family* family = spec ? FamilyOf(*spec) : nullptr;
  if (family == nullptr || (family == &kColumnsFamily && ReducesLittle(part))) return std::nullopt;
  const bool again = family == &kElementsFamily && read > all;
  return kLaunch + all + (again ? (read - all) / 8 : 0);
}

std::optional<std::vector<KernelSpec>> StagesOf(const KernelSpec& spec) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto given = GraphOf(spec);
  const auto sized = given ? graph::Specialise(*given, spec.dims) : given;
  if (!sized) return std::nullopt;
  const ValidGraph graph = graph::FuseMaps(graph::WithMatrixProducts(
      graph::WithoutLongSorts(graph::WithoutKnownPlaces(graph::WithoutSingleUpdates(*sized)))));
  const auto parts = graph::Divide(graph, CostOf);
  if (!parts) return std::nullopt;
  std::vector<KernelSpec> stages;
  for (const ValidGraph& part : *parts) stages.push_back(SpecOfGraph(part, {}).value());
  return stages;
}

class StagesTemplate : public BoundTemplate {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile,
                 std::vector<std::unique_ptr<ScheduleTemplate>> stages)
      : BoundTemplate(spec, profile), stages_(std::move(stages)) {
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

  /// Every stage's source in a namespace of its own, since helpers are written for constants in front of them.
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    RenderedKernel all;
    std::set<std::string> includes;
    std::string text;
    for (size_t i = 0; i < stages_.size(); ++i) {
      for (const ArgSpec& arg : stages_[i]->spec().args) {
        if (arg.role == Role::kOutput && !IsArgument(arg.name)) all.plan.workspaces.push_back({arg.name, BytesOf(arg)});
      }
      ATUNNER_TRY(RenderedKernel stage, stages_[i]->Render(i == main_ ? configuration : stages_[i]->Default()));
      const std::string name = fmt::format("stage{}", i + 1);
      // Whatever namespace they are in, kernels need names that no other stage has, also those that are not launched.
      std::string names, uses;
      for (const std::string& entry : EntriesOf(stage.plan)) uses += fmt::format("using {}::{};\n", name, entry);
      for (const std::string& kernel : KernelsOf(stage.source.text)) {
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
    all.plan.parameter_names = space_.Names();
    all.plan.parameter_values = configuration.values;
    return all;
  }

 private:
  static std::set<std::string> KernelsOf(const std::string& source) {
    static const std::regex kernel(R"(extern "C" __global__ void\s+(?:__launch_bounds__\([^()]*\)\s+)?(\w+)\()");
    std::set<std::string> names;
    for (std::sregex_iterator found(source.begin(), source.end(), kernel), end; found != end; ++found)
      names.insert((*found)[1].str());
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

  std::vector<std::unique_ptr<ScheduleTemplate>> stages_;
  size_t main_ = 0;
};

Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  std::vector<std::unique_ptr<ScheduleTemplate>> bound;
  const std::vector<KernelSpec> stages = StagesOf(spec).value();
  for (const KernelSpec& stage : stages) {
    ATUNNER_TRY(auto each, MakeTemplate(stage, profile));
    bound.push_back(std::move(each));
  }
  return std::make_unique<StagesTemplate>(spec, profile, std::move(bound));
}

}  // namespace

constinit const Family kStagesFamily{"stages", HasForm<StagesOf>, Bind};

}  // namespace atunner
