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
#include "atunner/graph/attention.h"
#include "atunner/graph/divide.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/rewrite.h"
#include "atunner/model/accuracy.h"
#include "atunner/model/divided_schedule.h"
#include "atunner/model/joined_plan.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/part_task.h"

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

/// In bytes of memory: what the part reads and writes, as many more as a launch of two microseconds could move, and an
/// eighth of what each element reads again from caches where nothing is kept.
std::optional<double> CostOf(const ValidGraph& part, double most, bool pairs) {
  constexpr double kLaunch = 8e6;
  const auto bytes = [&](graph::NodeId id) { return Real(CountOf(part, id) * SizeOf(part.node(id).type.dtype)); };
  double all = 0, read = 0;
  for (graph::NodeId id : part.inputs()) all += bytes(id);
  for (const graph::Output& output : part.outputs()) {
    all += bytes(output.node);
    read += graph::ElementText::Serves(part, output.node).work * bytes(output.node);
  }
  const bool attention = graph::AttentionOf(part).has_value();
  if (kLaunch + all >= most || !(attention || graph::HasOneOfAKind(part, pairs))) return std::nullopt;
  const auto made = TaskOfPart(part, Accuracy::kDefault);
  const Family* family = made ? FamilyOf(made->task) : nullptr;
  if (family == nullptr || (family == &kColumnsFamily && graph::ReducesLittle(part))) return std::nullopt;
  const bool again = family == &kElementsFamily && read > all;
  return kLaunch + all + (again ? (read - all) / 8 : 0);
}

/// `pairs`: a part may have two products of one operand.
std::optional<std::vector<PartTask>> StagesOf(const KernelSpec& spec, bool pairs) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto given = GraphOf(spec);
  const auto sized = given ? graph::Specialise(*given, spec.dims) : given;
  if (!sized) return std::nullopt;
  const ValidGraph graph = graph::FuseMaps(graph::WithMatrixProducts(graph::WithoutSingleUpdates(*sized)));
  const auto parts =
      graph::Divide(graph, [&](const ValidGraph& part, double most) { return CostOf(part, most, pairs); });
  if (!parts) return std::nullopt;
  std::vector<PartTask> stages;
  for (const ValidGraph& part : *parts) stages.push_back(TaskOfPart(part, AccuracyOf(spec)).value());
  return stages;
}

class StagesTemplate : public BoundTemplate, public DividedSchedule {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile, std::vector<PartTask> stages)
      : BoundTemplate(spec, profile), stages_(std::move(stages)) {}

  /// Equal stages are one part, and the one with most work is what the space is of.
  Status BindParts() {
    double longest = -1;
    for (const PartTask& stage : stages_) {
      const auto known = std::ranges::find_if(
          parts_, [&](const auto& part) { return part->spec().oracle.graph == stage.task.oracle.graph; });
      part_of_.push_back(static_cast<size_t>(known - parts_.begin()));
      if (known != parts_.end()) continue;
      ATUNNER_TRY(auto part, MakeTemplate(stage.task, profile_));
      // In ns, by memory's and tensor cores' peaks.
      const double flops = FlopCount(stage.task, {}).value_or(0);
      const double least = std::max(MinimumBytes(stage.task, {}).value_or(0) / profile_.dram_gbps,
                                    flops / (2 * profile_.tensor_fp16_fma_per_clk * profile_.sms * profile_.clock_ghz));
      if (least > longest) longest = least, main_ = parts_.size();
      parts_.push_back(std::move(part));
    }
    space_ = parts_[main_]->space();
    return {};
  }

  Configuration Default() const override { return parts_[main_]->Default(); }
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    return parts_[main_]->Cost(configuration, profile);
  }
  std::vector<const ScheduleTemplate*> Parts() const override {
    std::vector<const ScheduleTemplate*> parts;
    for (const auto& part : parts_) parts.push_back(part.get());
    return parts;
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    std::vector<Configuration> all;
    for (const auto& part : parts_) all.push_back(part->Default());
    all[main_] = configuration;
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
      const auto& [task, known_as] = stages_[i];
      for (const ArgSpec& arg : task.args) {
        const std::string& known = known_as.at(arg.name);
        if (arg.role == Role::kOutput && !IsArgument(known))
          all.plan.workspaces.push_back({known, Expr(ShapeOf(arg, task, task.dims)->bytes)});
      }
      ATUNNER_TRY(RenderedKernel stage, parts_[part_of_[i]]->Render(configurations[part_of_[i]]));
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
      const size_t before = all.plan.steps.size();
      ATUNNER_RETURN_IF_ERROR(JoinPlan(std::move(stage.plan), {name + "_", task.dims, known_as, spec_}, all.plan));
      for (size_t at = std::max<size_t>(1, before); at < all.plan.steps.size() && overlaps(); ++at)
        all.plan.steps[at].programmatic = !all.plan.steps[at].cooperative;
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
  std::vector<PartTask> stages_;
  std::vector<std::unique_ptr<ScheduleTemplate>> parts_;
  std::vector<size_t> part_of_;  ///< each stage's
  size_t main_ = 0;
};

Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  auto bound = std::make_unique<StagesTemplate>(spec, profile, StagesOf(spec, profile.cc_major == 9).value());
  ATUNNER_RETURN_IF_ERROR(bound->BindParts());
  return bound;
}

}  // namespace

constinit const Family kStagesFamily{"stages", [](const KernelSpec& spec) { return StagesOf(spec, false).has_value(); },
                                     Bind};

}  // namespace atunner
