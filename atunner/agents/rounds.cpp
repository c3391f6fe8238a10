#include "atunner/agents/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/agents/rounds_graph.h"
#include "atunner/agents/workbench.h"
#include "atunner/jobs/runs/round_tuning.h"

namespace atunner::agents {
namespace {

constexpr int kMostFlows = 1000;

std::string TextOf(const Json& facts) {
  return facts.is_object() ? facts.value("summary", "") : std::string();
}

Result<RoundsState> StateFrom(const std::string& flow, const Json& json) {
  RoundsState state;
  state.flow = flow;
  state.operator_summary = TextOf(json["operator"]);
  state.hardware_summary = TextOf(json["hardware"]);
  if (json["hardware"].is_object()) state.floor_ns = HardwareFromJson(json["hardware"]).floor_ns;
  ATUNNER_TRY(state.ideas, IdeasFromJson(json["ideas"]));
  ATUNNER_TRY(state.versions, VersionsFromJson(json["versions"]));
  for (const Json& round : json["rounds"]) state.rounds.push_back(RoundFromJson(round));
  state.result = json["result"];
  state.stop = json["stop"].get<std::string>();
  state.llm_tokens = json["llm_tokens"][0].get<int64_t>() + json["llm_tokens"][1].get<int64_t>();
  state.llm_stop = json["llm_stop"].get<std::string>();
  return state;
}

Result<std::unique_ptr<jobs::RoundTuning>> OpenTuning(const RoundsRequest& request,
                                                      const RoundsContext& context) {
  if (!request.source.file.empty())
    return jobs::RoundTuning::Open(request.source, request.optimize.tuning, context.services,
                                   context.events, context.stop);
  return jobs::RoundTuning::Open(request.optimize, context.services, context.events, context.stop);
}

/// Starts the flow, or goes on with it, with an open tuning job.
Result<RoundsResult> RunFlow(const std::string& id, const RoundsRequest& request,
                             jobs::RoundTuning& tuning, const RoundsContext& context,
                             const std::optional<Json>& answer) {
  ATUNNER_TRY(const auto model, OpenLanguageModel(request.llm, context.services.clock));
  ATUNNER_TRY(const auto compiler,
              context.services.compilers.Open(request.optimize.tuning.compile_timeout_seconds));
  const jobs::KernelProfiler profiler(tuning.schedule().spec(), tuning.target(), *compiler);
  Workbench bench(request, tuning, model.get(), request.source.file.empty() ? nullptr : &profiler);
  const workflow::Graph graph = RoundsGraph(&bench);
  workflow::FlowOptions options{.checkpoints = &context.checkpoints, .stop = context.stop};
  options.events = context.flow_events;
  options.interrupt_before = request.pause_before;
  options.clock = &context.services.clock;
  workflow::Flow flow(graph, id, options);
  ATUNNER_TRY(const auto known, context.checkpoints.Get(id, std::nullopt));
  if (known && model && known->state.contains("llm_tokens")) {
    const Json& spent = known->state["llm_tokens"];  // by earlier sessions
    model->chat->Count(spent[0].get<int64_t>(), spent[1].get<int64_t>());
  }
  workflow::Answers answers;
  if (known && answer) {
    ATUNNER_TRY(const auto writes, context.checkpoints.Writes(id, known->number));
    for (const workflow::PendingWrite& write : writes) {
      using Kind = workflow::PendingWrite::Kind;
      if (write.kind == Kind::kQuestion) answers[write.task] = *answer;
      if (write.kind == Kind::kAnswer || write.kind == Kind::kResult) answers.erase(write.task);
    }
  }
  workflow::FlowRecord record;
  record.title = request.optimize.tuning.command;
  record.request = ToJson(request);
  ATUNNER_TRY(const workflow::Outcome outcome,
              known ? flow.Resume(answers) : flow.Start(nullptr, std::move(record)));
  RoundsResult result;
  result.kind = outcome.kind;
  result.questions = outcome.questions;
  ATUNNER_TRY(result.state, StateFrom(id, outcome.state->ToJson()));
  return result;
}

}  // namespace

Result<RoundsResult> OptimizeInRounds(const RoundsRequest& request, const RoundsContext& context) {
  ATUNNER_RETURN_IF_ERROR(CheckRequest(request));
  RoundsRequest wanted = request;
  // The run of rounds is another one than that of a search, and other numbers make another one.
  wanted.optimize.tuning.strategy = fmt::format("rounds:{}:{}:{}:{}", request.rounds, request.ideas,
                                                request.implementations, request.keep);
  if (!request.llm.model.empty() || !request.llm.replay.empty())
    wanted.optimize.tuning.strategy += ":llm:" + request.llm.model;
  ATUNNER_TRY(const auto tuning, OpenTuning(wanted, context));
  if (request.optimize.tuning.fresh)
    ATUNNER_RETURN_IF_ERROR(context.checkpoints.Delete(tuning->run()));
  wanted.optimize.tuning.fresh = false;
  return RunFlow(tuning->run(), wanted, *tuning, context, std::nullopt);
}

Result<RoundsResult> ResumeRounds(const std::string& flow, const Json& answer,
                                  const RoundsContext& context) {
  ATUNNER_TRY(const workflow::FlowRecord record, FindFlow(context.checkpoints, flow));
  ATUNNER_TRY(const RoundsRequest request, RoundsRequestFromJson(record.request));
  ATUNNER_TRY(const auto tuning, OpenTuning(request, context));
  return RunFlow(record.id, request, *tuning, context, answer);
}

Result<std::string> ForkRounds(workflow::Checkpoints& checkpoints, const std::string& flow,
                               int64_t number, const Json& changes) {
  ATUNNER_TRY(workflow::FlowRecord record, FindFlow(checkpoints, flow));
  if (changes.is_object()) record.request.update(changes);
  ATUNNER_TRY(const RoundsRequest request, RoundsRequestFromJson(record.request));
  ATUNNER_RETURN_IF_ERROR(CheckRequest(request));
  const std::string source = record.id;
  ATUNNER_TRY(const auto all, checkpoints.Flows(kMostFlows));
  int forks = 1;
  const auto taken = [&](const std::string& id) {
    return std::ranges::any_of(all, [&](const auto& other) { return other.id == id; });
  };
  while (taken(fmt::format("{}-fork{}", source, forks))) ++forks;
  record.id = fmt::format("{}-fork{}", source, forks);
  record.created.clear();
  record.error.clear();
  const std::string id = record.id;
  ATUNNER_RETURN_IF_ERROR(
      workflow::Fork(RoundsGraph(nullptr), checkpoints, source, number, std::move(record)));
  return id;
}

Result<workflow::FlowRecord> FindFlow(workflow::Checkpoints& checkpoints, const std::string& name) {
  ATUNNER_TRY(std::vector<workflow::FlowRecord> flows, checkpoints.Flows(kMostFlows));
  std::vector<const workflow::FlowRecord*> matches;
  for (const workflow::FlowRecord& flow : flows) {
    if (flow.id == name) return flow;
    if (name == "last" || flow.id.starts_with(name)) matches.push_back(&flow);
    if (name == "last") break;
  }
  if (matches.size() == 1) return *matches.front();
  if (matches.empty())
    return Fail(ErrorCode::kNotFound, "there is no flow '" + name + "'", "",
                "`atunner workflow list` shows them");
  return Invalid(fmt::format("{} flows begin with '{}'", matches.size(), name), "",
                 "give more of the name");
}

Result<RoundsState> StateOf(workflow::Checkpoints& checkpoints, const std::string& flow,
                            std::optional<int64_t> number) {
  ATUNNER_TRY(const auto checkpoint, checkpoints.Get(flow, number));
  if (!checkpoint)
    return Fail(ErrorCode::kNotFound, number ? fmt::format("the flow has no step {}", *number)
                                             : "there is no flow '" + flow + "'");
  ATUNNER_TRY(const workflow::State state,
              workflow::State::FromJson(RoundsGraph(nullptr).channels(), checkpoint->state));
  return StateFrom(flow, state.ToJson());
}

}  // namespace atunner::agents
