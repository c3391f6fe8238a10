#include "atunner/workflow/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace atunner::workflow {
namespace {

std::string Where(const Node& node) { return "node '" + node.name + "'"; }

Error At(const Node& node, Error error) {
  error.where = error.where.empty() ? Where(node) : Where(node) + ", " + error.where;
  return error;
}

}  // namespace

Flow::Flow(const Graph& graph, std::string id, FlowOptions options)
    : graph_(graph),
      id_(std::move(id)),
      options_(std::move(options)),
      state_(std::make_shared<State>(graph.channels())),
      scheduled_(graph.nodes().size(), false),
      steps_(Settings()) {
  at_.arrivals.resize(graph.joins().size());
}

StepSettings Flow::Settings() {
  StepSettings settings;
  settings.threads = options_.threads;
  settings.stop = options_.stop;
  settings.drain = options_.drain;
  settings.clock = options_.clock;
  settings.call = [this](const Node& node, const NodeContext& context, size_t task) {
    return Call(node, context, task);
  };
  settings.emit = [this](size_t task, Json value) {
    EmitTask(FlowEvent::Kind::kCustom, task, std::move(value));
  };
  settings.on_start = [this](size_t task) { EmitTask(FlowEvent::Kind::kTaskStarted, task); };
  settings.on_retry = [this](size_t task, const Error& error) {
    EmitTask(FlowEvent::Kind::kTaskRetried, task, nullptr, error.ToString());
  };
  settings.on_end = [this](size_t task) { return KeepResult((*running_)[task], task); };
  return settings;
}

void Flow::Emit(FlowEvent event) {
  if (!options_.events) return;
  event.flow = id_;
  event.step = at_.step;
  event.checkpoint = at_.number;
  const std::scoped_lock lock(*gate_);
  options_.events(event);
}

void Flow::EmitTask(FlowEvent::Kind kind, size_t task, Json value, std::string text) {
  if (!options_.events) return;
  FlowEvent event;
  event.kind = kind;
  event.task = static_cast<int64_t>(task);
  event.node = graph_.nodes()[static_cast<size_t>(at_.next[task].node)].name;
  event.value = std::move(value);
  event.text = std::move(text);
  Emit(std::move(event));
}

Result<Outcome> Flow::Start(const Json& input, FlowRecord details) {
  if (!input.is_null()) {
    ATUNNER_TRY(State state, State::FromJson(graph_.channels(), input));
    *state_ = std::move(state);
  }
  for (const int entry : graph_.entries()) Schedule(entry);
  TakeDeferred();
  if (options_.checkpoints == nullptr) return Conclude(Loop());
  details.id = id_;
  details.graph = graph_.name();
  details.status = "running";
  if (details.created.empty()) details.created = UtcTimestamp();
  ATUNNER_TRY(const auto mark, options_.checkpoints->Occupy(id_));
  ATUNNER_RETURN_IF_ERROR(options_.checkpoints->AddFlow(details));
  ATUNNER_RETURN_IF_ERROR(PutCheckpoint("input", 0));
  return Conclude(Loop());
}

Result<Outcome> Flow::Resume(const Answers& answers) {
  if (options_.checkpoints == nullptr)
    return Invalid("a flow without checkpoints cannot be resumed", id_);
  Checkpoints& checkpoints = *options_.checkpoints;
  ATUNNER_TRY(const auto checkpoint, checkpoints.Get(id_, std::nullopt));
  if (!checkpoint) return Fail(ErrorCode::kNotFound, "there is no flow '" + id_ + "'");
  ATUNNER_TRY(const auto mark, checkpoints.Occupy(id_));
  ATUNNER_RETURN_IF_ERROR(checkpoints.RequestCancel(id_, false));
  ATUNNER_RETURN_IF_ERROR(Restore(*checkpoint));
  ATUNNER_RETURN_IF_ERROR(KeepAnswers(answers));
  ATUNNER_RETURN_IF_ERROR(checkpoints.SetStatus(id_, "running", ""));
  return Conclude(Loop());
}

Result<Outcome> Flow::Conclude(Result<Outcome> outcome) {
  if (options_.checkpoints == nullptr) return outcome;
  static constexpr const char* kStatus[] = {"finished", "waiting", "cancelled"};
  const std::scoped_lock lock(*gate_);
  ATUNNER_RETURN_IF_ERROR(options_.checkpoints->SetStatus(
      id_, outcome ? kStatus[static_cast<size_t>(outcome->kind)] : "failed",
      outcome ? "" : outcome.error().ToString()));
  return outcome;
}

Result<Outcome> Flow::Loop() {
  Emit({.kind = FlowEvent::Kind::kStarted});
  while (!at_.next.empty()) {
    ATUNNER_TRY(const bool stopped, MustStop());
    if (stopped) {
      Emit({.kind = FlowEvent::Kind::kCancelled});
      return Outcome{Outcome::Kind::kCancelled, state_, {}, at_.step};
    }
    if (at_.step >= options_.most_steps)
      return Fail(ErrorCode::kTimeout,
                  fmt::format("the flow has not ended after {} super-steps", at_.step), id_,
                  "a loop of its graph may have no way out");
    ATUNNER_TRY(auto outcome, RunStep());
    if (outcome) return *std::move(outcome);
  }
  Emit({.kind = FlowEvent::Kind::kFinished});
  return Outcome{Outcome::Kind::kFinished, state_, {}, at_.step};
}

Result<bool> Flow::MustStop() {
  if (options_.stop.stop_requested() || options_.drain.stop_requested()) return true;
  if (options_.checkpoints == nullptr) return false;
  const std::scoped_lock lock(*gate_);
  return options_.checkpoints->CancelRequested(id_);
}

bool Flow::IsGated(const Node& node) const {
  return std::ranges::find(options_.interrupt_before, node.name) != options_.interrupt_before.end();
}

std::vector<StepTask> Flow::TasksOf(KnownTasks known) {
  std::vector<StepTask> tasks(at_.next.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    StepTask& task = tasks[i];
    task.node = &graph_.nodes()[static_cast<size_t>(at_.next[i].node)];
    task.input = at_.next[i].input ? &*at_.next[i].input : nullptr;
    const auto found = known.find(static_cast<int64_t>(i));
    if (found == known.end()) continue;
    Known& one = found->second;
    for (auto& [index, answer] : one.answers) task.answers.push_back(std::move(answer));
    if (one.result) {
      task.result = *std::move(one.result);
      EmitTask(FlowEvent::Kind::kTaskKnown, i);
    } else if (one.IsOpen()) {
      task.result = NodeResult{.question = one.questions.rbegin()->second};
    }
  }
  return tasks;
}

Result<std::optional<Outcome>> Flow::RunStep() {
  ATUNNER_TRY(KnownTasks known, ReadWrites());
  std::vector<StepTask> tasks = TasksOf(std::move(known));
  running_ = &tasks;
  ATUNNER_TRY(const bool shared, steps_.Run(state_, tasks));
  running_ = nullptr;
  if (shared) state_ = std::make_shared<State>(*state_);
  const bool stopping = options_.stop.stop_requested();
  for (const StepTask& task : tasks) {
    if (task.result && !*task.result && !stopping)
      return std::unexpected(At(*task.node, task.result->error()));
  }
  for (const StepTask& task : tasks) {
    if (task.result && *task.result) continue;
    Emit({.kind = FlowEvent::Kind::kCancelled});
    return Outcome{Outcome::Kind::kCancelled, state_, {}, at_.step};
  }
  if (auto questions = OpenQuestions(tasks); !questions.empty())
    return Outcome{Outcome::Kind::kWaiting, state_, std::move(questions), at_.step};
  ATUNNER_RETURN_IF_ERROR(CommitStep(tasks));
  return std::nullopt;
}

std::vector<Question> Flow::OpenQuestions(const std::vector<StepTask>& tasks) const {
  std::vector<Question> questions;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const NodeResult& result = **tasks[i].result;
    if (result.question)
      questions.push_back({static_cast<int64_t>(i), tasks[i].node->name, *result.question});
  }
  return questions;
}

/// Applies the results and makes the tasks of the next step.
Status Flow::CommitStep(const std::vector<StepTask>& tasks) {
  state_->BeginStep();
  for (const StepTask& task : tasks) {
    if (auto applied = state_->Apply((*task.result)->updates); !applied)
      return std::unexpected(At(*task.node, applied.error()));
  }
  std::vector<std::string> inner;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].node->inner) inner.push_back(InnerId(*tasks[i].node, i));
  }
  ATUNNER_RETURN_IF_ERROR(Advance(tasks));
  ++at_.step;
  if (options_.checkpoints == nullptr) return {};
  ATUNNER_RETURN_IF_ERROR(PutCheckpoint("step", at_.number));
  const std::scoped_lock lock(*gate_);
  for (const std::string& flow : inner) ATUNNER_RETURN_IF_ERROR(options_.checkpoints->Delete(flow));
  return {};
}

Status Flow::Advance(const std::vector<StepTask>& tasks) {
  std::vector<int> numbers;
  for (const Task& task : at_.next) numbers.push_back(task.node);
  at_.next.clear();
  std::fill(scheduled_.begin(), scheduled_.end(), false);
  std::vector<bool> left(graph_.nodes().size(), false);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Node& node = *tasks[i].node;
    const NodeResult& result = **tasks[i].result;
    if (result.go_to) {
      if (auto added = AddTargets(*result.go_to); !added)
        return std::unexpected(At(node, added.error()));
      continue;
    }
    const auto number = static_cast<size_t>(numbers[i]);
    if (left[number]) continue;  // edges are followed once, however many tasks the node had
    left[number] = true;
    AddEdges(node, numbers[i]);
    for (const Router& router : node.routers) {
      if (auto added = AddTargets(router(*state_)); !added)
        return std::unexpected(At(node, added.error()));
    }
  }
  TakeDeferred();
  return {};
}

void Flow::AddEdges(const Node& node, int number) {
  for (const int edge : node.edges) Schedule(edge);
  for (const int join : node.joins) Arrive(join, number);
}

void Flow::Arrive(int join, int source) {
  std::vector<int>& arrived = at_.arrivals[static_cast<size_t>(join)];
  if (std::ranges::find(arrived, source) == arrived.end()) arrived.push_back(source);
  const Join& declared = graph_.joins()[static_cast<size_t>(join)];
  if (arrived.size() < declared.sources.size()) return;
  arrived.clear();
  Schedule(declared.target);
}

Status Flow::AddTargets(const std::vector<Target>& targets) {
  for (const Target& target : targets) {
    const int node = graph_.Find(target.node);
    if (node == -2) return Invalid("it leads to '" + target.node + "', which is no node");
    Schedule(node, target.input);
  }
  return {};
}

void Flow::Schedule(int node, std::optional<Json> input) {
  if (node == Graph::kEndNode) return;
  const auto number = static_cast<size_t>(node);
  if (!input) {
    if (scheduled_[number]) return;
    scheduled_[number] = true;
  }
  const bool deferred = graph_.nodes()[number].options.deferred;
  std::vector<Task>& list = deferred ? at_.deferred : at_.next;
  const auto same = [&](const Task& task) { return task.node == node && !task.input; };
  if (deferred && !input && std::ranges::any_of(list, same)) return;
  list.push_back({node, std::move(input)});
}

void Flow::TakeDeferred() {
  if (at_.next.empty()) at_.next = std::exchange(at_.deferred, {});
}

}  // namespace atunner::workflow
