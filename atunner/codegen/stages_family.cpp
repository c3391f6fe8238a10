// Stages: graphs whose reductions differ in their axes. Values for each row and then totals of them (losses), or totals
// that every row needs. Each stage is a graph of its own, which another family schedules; the one with most elements is
// tuned, the others run as their families would begin.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "atunner/graph/rewrite.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValidGraph;

enum Stage : int8_t { kAnywhere = -1, kBefore, kMain, kAfter };
constexpr Stage kStages[] = {kBefore, kMain, kAfter};

struct StageTask {
  KernelSpec spec;
  const Family* family = nullptr;
  bool main = false;
};

std::string KeptName(NodeId id) { return fmt::format("kept{}", id); }

/// Divides a graph. What inputs alone say of few elements is computed again wherever it is needed.
class Divider {
 public:
  explicit Divider(const ValidGraph& graph) : graph_(graph), stages_(graph.nodes().size(), kAnywhere) {
    for (const Node& node : graph.nodes()) most_ = std::max(most_, CountOf(node));
  }

  std::optional<std::vector<StageTask>> Run() {
    for (size_t id = 0; id < stages_.size(); ++id) {
      const auto stage = StageOf(graph_.nodes()[id]);
      if (!stage) return std::nullopt;
      stages_[id] = *stage;
    }
    for (const graph::Output& output : graph_.outputs()) {
      if (stages_[output.node] == kAnywhere) return std::nullopt;
    }
    MoveBack();
    std::vector<StageTask> tasks;
    for (Stage stage : kStages) {
      if (std::ranges::find(stages_, stage) == stages_.end()) continue;
      const auto part = Part(stage);
      const auto spec = part ? SpecOfGraph(*part, {}) : Result<KernelSpec>(std::unexpected(part.error()));
      const Family* family = spec ? FamilyOf(*spec) : nullptr;
      if (family == nullptr) return std::nullopt;
      tasks.push_back({*spec, family, stage == kMain});
    }
    return tasks.size() > 1 ? std::optional(std::move(tasks)) : std::nullopt;
  }

 private:
  static int64_t CountOf(const Node& node) { return graph::ElementCount(node.type.shape).factor(); }

  std::optional<Stage> StageOf(const Node& node) const {
    Stage stage = kAnywhere;
    for (NodeId operand : node.operands) stage = std::max(stage, stages_[operand]);
    if (node.operands.empty()) return stage;
    if (CountOf(node) == most_) return stage == kAfter ? std::nullopt : std::optional(kMain);
    const bool total = node.As<graph::Reduce>() && CountOf(graph_.node(node.operands[0])) < most_;
    if (total) return stage < kMain ? kBefore : kAfter;
    const bool reduces = CountOf(graph_.node(node.operands[0])) == most_ && stages_[node.operands[0]] != kAfter;
    return stage == kBefore || reduces ? std::max(stage, kMain) : stage;
  }
  /// Totals that only the last stage needs wait for it.
  void MoveBack() {
    if (std::ranges::find(stages_, kAfter) == stages_.end()) return;
    std::vector<bool> early(stages_.size(), false);
    for (size_t id = stages_.size(); id-- > 0;) {
      for (NodeId operand : graph_.nodes()[id].operands)
        early[operand] = early[operand] || early[id] || stages_[id] == kMain;
      if (stages_[id] == kBefore && !early[id]) stages_[id] = kAfter;
    }
  }

  static const Family* FamilyOf(const KernelSpec& spec) {
    for (const Family* family : {&kReductionFamily, &kColumnsFamily, &kElementsFamily}) {
      if (family->Match(spec)) return family;
    }
    return nullptr;
  }

  Result<ValidGraph> Part(Stage stage) const {
    graph::GraphBuilder builder(graph_.name());
    std::vector<graph::Value> made(stages_.size());
    const std::function<graph::Value(NodeId)> make = [&](NodeId id) {
      if (made[id].id >= 0) return made[id];
      const Node& node = graph_.node(id);
      std::vector<graph::Value> operands;
      const bool earlier = stages_[id] != kAnywhere && stages_[id] < stage;
      for (NodeId operand : node.operands) {
        if (!earlier) operands.push_back(make(operand));
      }
      const auto* constant = node.As<graph::Constant>();
      made[id] = node.As<graph::Input>() || earlier ? builder.Input(earlier ? KeptName(id) : node.name, node.type)
                 : constant                         ? builder.Constant(node.type, constant->values)
                                                    : builder.Add(node.operation, operands);
      return made[id];
    };
    std::set<NodeId> kept;
    for (size_t id = 0; id < stages_.size(); ++id) {
      for (NodeId operand : graph_.nodes()[id].operands) {
        if (stages_[operand] == stage && stages_[id] > stage) kept.insert(operand);
      }
    }
    for (const graph::Output& output : graph_.outputs()) {
      if (stages_[output.node] == stage) builder.Output(output.name, make(output.node));
    }
    for (NodeId id : kept) builder.Output(KeptName(id), make(id));
    return std::move(builder).Finish();
  }

  const ValidGraph& graph_;
  std::vector<Stage> stages_;
  int64_t most_ = 1;
};

std::optional<std::vector<StageTask>> StagesOf(const KernelSpec& spec) {
  if (spec.oracle.kind != Oracle::Kind::kGraph || !spec.dims.empty()) return std::nullopt;
  const auto given = GraphOf(spec);
  if (!given) return std::nullopt;
  const ValidGraph graph = graph::FuseMaps(graph::WithoutSingleUpdates(*given));
  return Divider(graph).Run();
}

class StagesTemplate : public BoundTemplate {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile, const std::vector<StageTask>& tasks)
      : BoundTemplate(spec, profile) {
    for (const StageTask& task : tasks) {
      if (task.main) main_ = stages_.size();
      stages_.push_back(task.family->Bind(task.spec, profile).value());
    }
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
      // Whatever namespace they are in, kernels need names that no other stage has.
      std::string names, uses;
      for (const std::string& entry : EntriesOf(stage.plan)) {
        names += fmt::format("#define {1} {0}_{1}\n", name, entry);
        uses += fmt::format("using {0}::{1};\n#undef {1}\n", name, entry);
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
      ATUNNER_TRY(const int64_t number, size.EvaluateInt(known));
      size = Expr(number);
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
        if (arg.kind == ArgBinding::Kind::kScalar) ATUNNER_RETURN_IF_ERROR(fix(arg.value));
        if (arg.kind == ArgBinding::Kind::kWorkspace) arg.name = name + "_" + arg.name;
        if (arg.kind == ArgBinding::Kind::kTensor && !IsArgument(arg.name)) arg = ArgBinding::Workspace(arg.name);
      }
      step.entry = name + "_" + step.entry;
      plan.steps.push_back(std::move(step));
    }
    return {};
  }

  std::vector<std::unique_ptr<ScheduleTemplate>> stages_;
  size_t main_ = 0;
};

}  // namespace

constinit const Family kStagesFamily = FormFamily<StagesTemplate, StagesOf>("stages");

}  // namespace atunner
