// Runs a graph: super-step after super-step, from its start or from a checkpoint.
//
//   Flow flow(graph, "20261127-2301-rounds", {.checkpoints = &checkpoints});
//   ATUNNER_TRY(Outcome outcome, flow.Start({{"question", "…"}}, record));
//   if (outcome.kind == Outcome::Kind::kWaiting)
//     ATUNNER_TRY(outcome, flow.Resume({{outcome.questions[0].task, answer}}));
//
// A task that fails (after its retries) ends the flow with its error when the other tasks of the
// step have ended. Their results are kept, so that Resume() runs only the failed one again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/result.h"
#include "atunner/workflow/checkpoint.h"
#include "atunner/workflow/event.h"
#include "atunner/workflow/graph.h"
#include "atunner/workflow/step.h"

namespace atunner::workflow {

struct FlowOptions {
  Checkpoints* checkpoints = nullptr;  ///< nullptr: the flow cannot be resumed
  int threads = 1;                     ///< above 1, the tasks of a step run in parallel
  int64_t most_steps = 1000;           ///< recursion limit: super-steps of one flow
  std::stop_token stop = {};           ///< cancels: running nodes are told to stop
  std::stop_token drain = {};          ///< running nodes end, then the flow stops
  FlowListener events = nullptr;
  /// The flow asks a person before these nodes run; any answer lets it go on.
  std::vector<std::string> interrupt_before = {};
  Clock* clock = &SystemClock();
};

/// What a person must decide before the flow goes on.
struct Question {
  int64_t task = 0;  ///< key of the answer for Resume()
  std::string node;
  Json value;
};

struct Outcome {
  enum class Kind : uint8_t { kFinished, kWaiting, kCancelled };
  Kind kind = Kind::kFinished;
  std::shared_ptr<const State> state;
  std::vector<Question> questions = {};  ///< kWaiting: at least one
  int64_t steps = 0;                     ///< super-steps since the flow began
};

/// Answers of a person by the number of the task that asked.
using Answers = std::map<int64_t, Json>;

class Flow {
 public:
  /// `graph` and what `options` points to must outlive the object.
  Flow(const Graph& graph, std::string id, FlowOptions options = {});

  /// `input` gives channels their first values. `details` are for a person who lists flows; its id,
  /// graph and status are filled in. kInvalidInput when the id is taken.
  Result<Outcome> Start(const Json& input, FlowRecord details = {});
  /// Goes on from the last checkpoint. A flow that has ended just gives its outcome. kNotFound for
  /// an unknown flow, kInvalidInput for an answer to a task that asked nothing.
  Result<Outcome> Resume(const Answers& answers = {});

 private:
  struct Task {
    int node = 0;
    std::optional<Json> input;
  };
  /// Checkpoint with numbers of nodes in place of names.
  struct Position {
    int64_t number = 0;
    int64_t step = 0;
    std::vector<Task> next;
    std::vector<Task> deferred;
    std::vector<std::vector<int>> arrivals;  ///< by join
  };
  /// What earlier sessions left of one task of the current step.
  struct Known {
    std::optional<NodeResult> result;
    std::map<int64_t, Json> questions;
    std::map<int64_t, Json> answers;
    bool IsOpen() const { return !result && questions.size() > answers.size(); }
  };
  using KnownTasks = std::map<int64_t, Known>;

  Result<Outcome> Loop();
  Result<Outcome> Conclude(Result<Outcome> outcome);
  Result<std::optional<Outcome>> RunStep();
  Status CommitStep(const std::vector<StepTask>& tasks);
  Status Advance(const std::vector<StepTask>& tasks);
  Status AddTargets(const std::vector<Target>& targets);
  void Schedule(int node, std::optional<Json> input = std::nullopt);
  void AddEdges(const Node& node, int number);
  void Arrive(int join, int source);
  void TakeDeferred();

  Result<KnownTasks> ReadWrites() const;
  std::vector<StepTask> TasksOf(KnownTasks known);
  Status KeepResult(const StepTask& task, size_t at);
  std::vector<Question> OpenQuestions(const std::vector<StepTask>& tasks) const;
  Status PutCheckpoint(const std::string& origin, int64_t parent);
  Status Restore(const Checkpoint& checkpoint);
  Status KeepAnswers(const Answers& answers);
  Result<bool> MustStop();

  Result<NodeResult> Call(const Node& node, const NodeContext& context, size_t task);
  Result<NodeResult> CallInner(const Subgraph& inner, const NodeContext& context,
                               const std::string& id);
  Result<Outcome> RunInside(const Subgraph& inner, const NodeContext& context);
  Status TakeAnswer(const std::vector<Json>& answers);
  std::string InnerId(const Node& node, size_t task) const;
  bool IsGated(const Node& node) const;
  void Emit(FlowEvent event);
  void EmitTask(FlowEvent::Kind kind, size_t task, Json value = nullptr, std::string text = "");
  StepSettings Settings();

  const Graph& graph_;
  std::string id_;
  FlowOptions options_;
  /// Checkpoints and events are used by one thread at a time; inner flows share it.
  std::shared_ptr<std::mutex> gate_ = std::make_shared<std::mutex>();
  std::shared_ptr<State> state_;
  Position at_;
  std::vector<bool> scheduled_;  ///< by node: it is a task without input of the next step
  std::vector<StepTask>* running_ = nullptr;
  StepRunner steps_;  ///< last: its threads end first
};

/// Adds a checkpoint to the flow that equals number `number`, with `updates` applied; Resume() then
/// goes on from there. The later checkpoints stay. kNotFound for an unknown flow or checkpoint.
Result<int64_t> GoBack(const Graph& graph, Checkpoints& checkpoints, const std::string& flow,
                       int64_t number, const Updates& updates = {});

/// Begins the new flow `record.id` with a copy of a checkpoint, with `updates` applied.
Status Fork(const Graph& graph, Checkpoints& checkpoints, const std::string& flow, int64_t number,
            FlowRecord record, const Updates& updates = {});

}  // namespace atunner::workflow
