// The part of a flow that deals with checkpoints, and travel in time.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "atunner/workflow/flow.h"

namespace atunner::workflow {
namespace {

Json ArrivalsJson(const std::vector<std::vector<int>>& arrivals, const Graph& graph) {
  Json json = Json::array();
  for (const std::vector<int>& arrived : arrivals) {
    Json names = Json::array();
    for (const int node : arrived) names.push_back(graph.nodes()[static_cast<size_t>(node)].name);
    json.push_back(std::move(names));
  }
  return json;
}

Status CheckNodes(const Graph& graph, const std::vector<Target>& targets) {
  for (const Target& target : targets) {
    if (graph.Find(target.node) < 0)
      return Invalid("the checkpoint names the node '" + target.node + "', which the graph lacks",
                     "", "it was written by another version; begin the flow anew");
  }
  return {};
}

/// A copy of a checkpoint with updates applied, as number `number`.
Result<Checkpoint> Changed(const Graph& graph, Checkpoint checkpoint, int64_t number,
                           std::string origin, const Updates& updates) {
  ATUNNER_TRY(State state, State::FromJson(graph.channels(), checkpoint.state));
  ATUNNER_RETURN_IF_ERROR(state.Apply(updates));
  checkpoint.state = state.ToJson();
  checkpoint.parent = checkpoint.number;
  checkpoint.number = number;
  checkpoint.origin = std::move(origin);
  checkpoint.created = UtcTimestamp();
  return checkpoint;
}

Result<Checkpoint> Existing(Checkpoints& checkpoints, const std::string& flow, int64_t number) {
  ATUNNER_TRY(auto checkpoint, checkpoints.Get(flow, number));
  if (!checkpoint)
    return Fail(ErrorCode::kNotFound,
                fmt::format("the flow '{}' has no checkpoint {}", flow, number));
  return *std::move(checkpoint);
}

}  // namespace

Result<Flow::KnownTasks> Flow::ReadWrites() const {
  KnownTasks known;
  if (options_.checkpoints == nullptr) return known;
  const std::scoped_lock lock(*gate_);
  ATUNNER_TRY(const auto writes, options_.checkpoints->Writes(id_, at_.number));
  for (const PendingWrite& write : writes) {
    Known& one = known[write.task];
    switch (write.kind) {
      case PendingWrite::Kind::kResult: {
        ATUNNER_TRY(one.result, NodeResultFromJson(write.body));
        break;
      }
      case PendingWrite::Kind::kQuestion:
        one.questions[write.index] = write.body;
        break;
      case PendingWrite::Kind::kAnswer:
        one.answers[write.index] = write.body;
        break;
    }
  }
  return known;
}

Status Flow::KeepAnswers(const Answers& answers) {
  ATUNNER_TRY(const KnownTasks known, ReadWrites());
  for (const auto& [task, answer] : answers) {
    const auto found = known.find(task);
    if (found == known.end() || !found->second.IsOpen())
      return Invalid(fmt::format("task {} of the flow has no open question", task), id_);
    const PendingWrite write{task, PendingWrite::Kind::kAnswer, std::ssize(found->second.answers),
                             answer};
    const std::scoped_lock lock(*gate_);
    ATUNNER_RETURN_IF_ERROR(options_.checkpoints->PutWrite(id_, at_.number, write));
  }
  return {};
}

/// Keeps a task's result or question, unless it failed: then it runs again.
Status Flow::KeepResult(const StepTask& task, size_t at) {
  if (!*task.result) {
    EmitTask(FlowEvent::Kind::kTaskFailed, at, nullptr, task.result->error().ToString());
    return {};
  }
  const NodeResult& result = **task.result;
  if (options_.checkpoints == nullptr) {
    if (result.question)
      return Invalid("a node asks a person, and the flow keeps no checkpoints", id_);
  } else {
    PendingWrite write;
    write.task = static_cast<int64_t>(at);
    write.kind = result.question ? PendingWrite::Kind::kQuestion : PendingWrite::Kind::kResult;
    write.index = result.question ? std::ssize(task.answers) : 0;
    write.body = result.question ? *result.question : ToJson(result);
    const std::scoped_lock lock(*gate_);
    ATUNNER_RETURN_IF_ERROR(options_.checkpoints->PutWrite(id_, at_.number, write));
  }
  if (!options_.events) return {};
  if (result.question)
    EmitTask(FlowEvent::Kind::kQuestion, at, *result.question);
  else
    EmitTask(FlowEvent::Kind::kTaskFinished, at, ToJson(result)["updates"]);
  return {};
}

Status Flow::PutCheckpoint(const std::string& origin, int64_t parent) {
  const auto targets = [&](const std::vector<Task>& tasks) {
    std::vector<Target> named;
    for (const Task& task : tasks)
      named.push_back({graph_.nodes()[static_cast<size_t>(task.node)].name, task.input});
    return named;
  };
  Checkpoint checkpoint;
  checkpoint.number = at_.number + 1;
  checkpoint.parent = parent;
  checkpoint.step = at_.step;
  checkpoint.origin = origin;
  checkpoint.state = state_->ToJson();
  checkpoint.next = targets(at_.next);
  checkpoint.deferred = targets(at_.deferred);
  checkpoint.arrivals = ArrivalsJson(at_.arrivals, graph_);
  checkpoint.created = UtcTimestamp();
  {
    const std::scoped_lock lock(*gate_);
    ATUNNER_RETURN_IF_ERROR(options_.checkpoints->Put(id_, checkpoint));
  }
  at_.number = checkpoint.number;
  Emit({.kind = FlowEvent::Kind::kCheckpoint});
  return {};
}

Status Flow::Restore(const Checkpoint& checkpoint) {
  ATUNNER_TRY(State state, State::FromJson(graph_.channels(), checkpoint.state));
  state_ = std::make_shared<State>(std::move(state));
  at_ = Position();
  at_.arrivals.resize(graph_.joins().size());
  at_.number = checkpoint.number;
  at_.step = checkpoint.step;
  ATUNNER_RETURN_IF_ERROR(CheckNodes(graph_, checkpoint.next));
  ATUNNER_RETURN_IF_ERROR(CheckNodes(graph_, checkpoint.deferred));
  for (const Target& target : checkpoint.next)
    at_.next.push_back({graph_.Find(target.node), target.input});
  for (const Target& target : checkpoint.deferred)
    at_.deferred.push_back({graph_.Find(target.node), target.input});
  for (size_t join = 0; join < at_.arrivals.size() && join < checkpoint.arrivals.size(); ++join) {
    for (const Json& name : checkpoint.arrivals[join]) {
      const int node = name.is_string() ? graph_.Find(name.get<std::string>()) : -2;
      if (node >= 0) at_.arrivals[join].push_back(node);
    }
  }
  return {};
}

std::string Flow::InnerId(const Node& node, size_t task) const {
  return fmt::format("{}/{}.{}.{}", id_, at_.number, task, node.name);
}

Result<NodeResult> Flow::Call(const Node& node, const NodeContext& context, size_t task) {
  if (!IsGated(node))
    return node.inner ? CallInner(*node.inner, context, InnerId(node, task))
                      : node.function(context);
  if (context.answers.empty()) return NodeResult{.question = Json{{"before", node.name}}};
  const std::vector<Json> answers(context.answers.begin() + 1, context.answers.end());
  const NodeContext inside{context.state, context.input,   answers,
                           context.stop,  context.attempt, context.emit};
  return node.inner ? CallInner(*node.inner, inside, InnerId(node, task)) : node.function(inside);
}

/// Runs the inner flow from its start or from its last checkpoint.
Result<NodeResult> Flow::CallInner(const Subgraph& inner, const NodeContext& context,
                                   const std::string& id) {
  FlowOptions options = options_;
  options.stop = context.stop;
  Flow flow(*inner.graph, id, std::move(options));
  flow.gate_ = gate_;
  ATUNNER_TRY(const Outcome outcome, flow.RunInside(inner, context));
  if (outcome.kind == Outcome::Kind::kCancelled)
    return Fail(ErrorCode::kCancelled, "the inner flow was cancelled", id);
  NodeResult result;
  if (outcome.kind == Outcome::Kind::kWaiting) {
    const Question& question = outcome.questions.front();
    result.question = Json{
        {"flow", id}, {"task", question.task}, {"node", question.node}, {"value", question.value}};
    return result;
  }
  for (const std::string& channel : inner.outputs)
    result.updates.push_back({channel, (*outcome.state)[channel]});
  return result;
}

/// The inner flow's way through Start() or Resume(): it has no record of its own, and the process
/// that works on the outer flow works on it.
Result<Outcome> Flow::RunInside(const Subgraph& inner, const NodeContext& context) {
  std::optional<Checkpoint> checkpoint;
  if (options_.checkpoints != nullptr) {
    const std::scoped_lock lock(*gate_);
    ATUNNER_TRY(checkpoint, options_.checkpoints->Get(id_, std::nullopt));
  }
  if (checkpoint) {
    ATUNNER_RETURN_IF_ERROR(Restore(*checkpoint));
    ATUNNER_RETURN_IF_ERROR(TakeAnswer(context.answers));
    return Loop();
  }
  Json input = Json::object();
  for (const std::string& channel : inner.inputs) input[channel] = context.state[channel];
  if (context.input != nullptr && context.input->is_object()) input.update(*context.input);
  ATUNNER_TRY(State state, State::FromJson(graph_.channels(), input));
  *state_ = std::move(state);
  for (const int entry : graph_.entries()) Schedule(entry);
  TakeDeferred();
  if (options_.checkpoints != nullptr) ATUNNER_RETURN_IF_ERROR(PutCheckpoint("input", 0));
  return Loop();
}

/// Hands the newest answer to the question that is open, unless an earlier session did so.
Status Flow::TakeAnswer(const std::vector<Json>& answers) {
  if (answers.empty()) return {};
  size_t taken = 0;
  std::vector<Checkpoint> all;
  {
    const std::scoped_lock lock(*gate_);
    ATUNNER_TRY(all, options_.checkpoints->List(id_));
    for (const Checkpoint& checkpoint : all) {
      ATUNNER_TRY(const auto writes, options_.checkpoints->Writes(id_, checkpoint.number));
      taken += static_cast<size_t>(
          std::ranges::count(writes, PendingWrite::Kind::kAnswer, &PendingWrite::kind));
    }
  }
  if (taken >= answers.size()) return {};
  ATUNNER_TRY(const KnownTasks known, ReadWrites());
  for (const auto& [task, one] : known) {
    if (one.IsOpen()) return KeepAnswers({{task, answers[taken]}});
  }
  return {};
}

Result<int64_t> GoBack(const Graph& graph, Checkpoints& checkpoints, const std::string& flow,
                       int64_t number, const Updates& updates) {
  ATUNNER_TRY(Checkpoint checkpoint, Existing(checkpoints, flow, number));
  ATUNNER_TRY(const auto last, checkpoints.Get(flow, std::nullopt));
  ATUNNER_TRY(const Checkpoint changed, Changed(graph, std::move(checkpoint), last->number + 1,
                                                updates.empty() ? "replay" : "edit", updates));
  ATUNNER_RETURN_IF_ERROR(checkpoints.Put(flow, changed));
  return changed.number;
}

Status Fork(const Graph& graph, Checkpoints& checkpoints, const std::string& flow, int64_t number,
            FlowRecord record, const Updates& updates) {
  ATUNNER_TRY(Checkpoint checkpoint, Existing(checkpoints, flow, number));
  ATUNNER_TRY(Checkpoint changed, Changed(graph, std::move(checkpoint), 1, "fork", updates));
  changed.parent = 0;
  record.graph = graph.name();
  record.parent = flow;
  record.parent_number = number;
  if (record.created.empty()) record.created = UtcTimestamp();
  record.status = "cancelled";  // nobody works on it until it is resumed
  ATUNNER_RETURN_IF_ERROR(checkpoints.AddFlow(record));
  return checkpoints.Put(record.id, changed);
}

}  // namespace atunner::workflow
