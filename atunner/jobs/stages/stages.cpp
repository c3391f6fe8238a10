#include "atunner/jobs/stages/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/graph/text.h"
#include "atunner/model/json/json.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/operators/task.h"

namespace atunner::jobs {
namespace {

constexpr double kJudgeSeconds = 180;

/// A stage's value for programs and for people.
struct Value {
  Json json;
  std::string text;
};

/// The sentence that stands for the graph of a task without one.
std::string WithoutGraph(const KernelSpec& spec) {
  return spec.oracle.kind == Oracle::Kind::kKernel
             ? "no graph: a kernel of the user's is its own oracle\n"
             : "no graph: the operator '" + spec.oracle.operator_name +
                   "' has a reference function\n";
}

/// `fused`: after fusion.
Value GraphValue(const KernelSpec& spec, bool fused = false) {
  const Task task = Task::Of(spec);
  const graph::ValidGraph* graph = fused ? task.fused() : task.graph();
  if (graph == nullptr) return {Json(), WithoutGraph(spec)};
  const std::string text = graph::Print(*graph);
  return {Json(text), text};
}

Value PartitionValue(const ScheduleTemplate& schedule) {
  const auto* divided = dynamic_cast<const PartitionedSchedule*>(&schedule);
  const auto parts = divided != nullptr ? divided->Parts()
                                        : std::vector<const ScheduleTemplate*>{&schedule};
  Value value{Json::array(),
              fmt::format("{} subgraph{}\n", parts.size(), parts.size() == 1 ? "" : "s")};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Value graph = GraphValue(parts[i]->spec());
    value.json.push_back({{"task", parts[i]->spec().name}, {"graph", graph.json}});
    value.text += fmt::format("\nsubgraph {}: {}\n{}", i + 1, parts[i]->spec().name, graph.text);
  }
  return value;
}

Value TemplateValue(const ScheduleTemplate& schedule) {
  const ParameterSpace& space = schedule.space();
  const Configuration first = schedule.Default();
  Value value{{{"space", ToJson(space)}, {"default", ToJson(first)}}, ""};
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    std::string values;
    for (const auto& each : parameter.values)
      values += (values.empty() ? "" : ", ") + ToString(each);
    value.text += fmt::format("{} = {}  (default {}){}\n", parameter.name, values,
                              ToString(first.values[i]),
                              parameter.meaning.empty() ? "" : "  " + parameter.meaning);
  }
  for (const Constraint& constraint : space.constraints)
    value.text += "constraint: " + constraint.condition.text() + "\n";
  return value;
}

Value VerifyValue(const Verdict& verdict) {
  Value value{ToJson(verdict), std::string(Name(verdict.kind))};
  value.text += (verdict.reason.empty() ? "" : ": " + verdict.reason) + "\n";
  for (const CheckRecord& check : verdict.checks)
    value.text += fmt::format("{} {} {}: error {:.2e}, bound {:.2e}\n",
                              check.passed ? "passed" : "FAILED", check.check, check.family,
                              check.error, check.bound);
  return value;
}

/// Makes the stages one after the other; each may need what an earlier one made.
class Walk {
 public:
  Walk(const ScheduleTemplate& schedule, const Target& target, Services& services)
      : schedule_(schedule), target_(target), services_(services) {}

  Result<Value> Make(Stage stage) {
    switch (stage) {
      case Stage::kGraph:
        return GraphValue(schedule_.spec());
      case Stage::kFused:
        return GraphValue(schedule_.spec(), /*fused=*/true);
      case Stage::kPartition:
        return PartitionValue(schedule_);
      case Stage::kTemplate:
        return TemplateValue(schedule_);
      case Stage::kSource:
        return Source();
      case Stage::kPlan:
        return Plan();
      case Stage::kPtx:
        return Ptx();
      case Stage::kVerify:
        return Verify();
    }
    return Fail(ErrorCode::kInternal, "no such stage");
  }

 private:
  Status Render() {
    if (rendered_) return {};
    ATUNNER_TRY(rendered_, schedule_.Render(schedule_.Default()));
    return {};
  }
  Status Compile() {
    if (module_) return {};
    ATUNNER_RETURN_IF_ERROR(Render());
    ATUNNER_TRY(const auto compiler, services_.compilers.Open(kCompileTimeoutSeconds));
    ATUNNER_TRY(
        CompileOutcome outcome,
        compiler->Compile({rendered_->source, EntriesOf(rendered_->plan), target_.profile.Arch()}));
    if (!outcome.ok())
      return Invalid("the default configuration does not compile: " + outcome.error);
    module_ = *std::move(outcome.module);
    return {};
  }
  Result<Value> Source() {
    ATUNNER_RETURN_IF_ERROR(Render());
    return Value{ToJson(rendered_->source), rendered_->source.text};
  }
  Result<Value> Plan() {
    ATUNNER_RETURN_IF_ERROR(Render());
    const Json json = ToJson(rendered_->plan);
    return Value{json, DumpJson(json, 2) + "\n"};
  }
  Result<Value> Ptx() {
    ATUNNER_RETURN_IF_ERROR(Compile());
    return Value{Json(module_->ptx), module_->ptx};
  }
  Result<Value> Verify() {
    ATUNNER_RETURN_IF_ERROR(Compile());
    const auto judge = services_.devices.MakeJudge(target_, kJudgeSeconds);
    ATUNNER_RETURN_IF_ERROR(judge->Begin({schedule_.spec(), 1, 60}));
    const CandidateKernel candidate{*module_, rendered_->plan,
                                    schedule_.CheckDims(schedule_.Default())};
    ATUNNER_TRY(const JudgeAnswer answer,
                judge->Examine(candidate, {.time = false, .incumbent_ns = {}, .seed = 1}));
    return VerifyValue(answer.verdict);
  }

  const ScheduleTemplate& schedule_;
  const Target& target_;
  Services& services_;
  std::optional<RenderedKernel> rendered_;
  std::optional<CompiledModule> module_;
};

bool IsShown(const Inspection& inspection, Stage stage) {
  return std::ranges::find(inspection.dump, stage) != inspection.dump.end() ||
         (inspection.dump.empty() && inspection.stop_after == stage);
}

}  // namespace

Status ShowStages(const ScheduleTemplate& schedule, const Target& target,
                  const Inspection& inspection, Services& services, const EventSink& events) {
  Walk walk(schedule, target, services);
  for (int i = 0; i <= static_cast<int>(Stage::kVerify); ++i) {
    const auto stage = static_cast<Stage>(i);
    if (IsShown(inspection, stage)) {
      ATUNNER_TRY(Value value, walk.Make(stage));
      events(StageEvent{stage, schedule.spec().name, std::move(value.json), std::move(value.text)});
    }
    if (inspection.stop_after == stage) break;
  }
  return {};
}

}  // namespace atunner::jobs
