// Checkpoints of flows: after every super-step the whole state and the tasks of the next step are
// kept, and within a step the result of every task that has ended (a pending write). So a flow
// whose process ended goes on where it was, and no task that ended runs again.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/workflow/graph.h"

namespace atunner::workflow {

/// A point of a flow between two super-steps.
struct Checkpoint {
  int64_t number = 0;  ///< 1, 2, … within the flow, in the order of writing
  int64_t parent = 0;  ///< number of the checkpoint that this one was computed from; 0: none
  int64_t step = 0;    ///< super-steps since the flow began
  /// "input", "step", "replay" (went back to `parent`), "edit" (state changed by a person) or
  /// "fork" (copied from another flow).
  std::string origin;
  Json state;
  std::vector<Target> next;       ///< tasks of the next super-step; empty: the flow has ended
  std::vector<Target> deferred;   ///< tasks that wait until nothing else is left
  Json arrivals = Json::array();  ///< by join: the numbers of the sources that have ended
  std::string created;            ///< UTC
};

/// What is known of a task of the step after a checkpoint.
struct PendingWrite {
  enum class Kind : uint8_t { kResult, kQuestion, kAnswer };
  int64_t task = 0;  ///< position in Checkpoint::next
  Kind kind = Kind::kResult;
  int64_t index = 0;  ///< 0, 1, … of the task's questions and answers
  Json body;
};

struct FlowRecord {
  std::string id;
  std::string graph;    ///< name of the graph
  std::string title;    ///< for people: the command
  std::string created;  ///< UTC
  /// "running", "waiting" (for a person), "cancelled", "failed" or "finished"; reads "interrupted"
  /// when no process works on it.
  std::string status = "running";
  Json request = nullptr;     ///< what the flow was begun with, so that it can be resumed by its id
  std::string parent = "";    ///< flow that it was forked from, or ""
  int64_t parent_number = 0;  ///< and its checkpoint
  std::string error = "";     ///< of the last failure
};

Json ToJson(const Target& target);
Json ToJson(const std::vector<Target>& targets);
Result<std::vector<Target>> TargetsFromJson(const Json& json);
Json ToJson(const NodeResult& result);
Result<NodeResult> NodeResultFromJson(const Json& json);
/// {"flow": …, "graph": …, "status": …, …}.
Json ToJson(const FlowRecord& flow);
Json ToJson(const Checkpoint& checkpoint);

/// Where checkpoints are kept. Every call is atomic, and durable against the end of the process
/// when it returns. All may be called from one thread at a time.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  /// kInvalidInput when there is a flow of that id.
  virtual Status AddFlow(const FlowRecord& flow) = 0;
  virtual Status SetStatus(const std::string& flow, const std::string& status,
                           const std::string& error) = 0;
  virtual Result<std::optional<FlowRecord>> FindFlow(const std::string& id) = 0;
  /// Newest first.
  virtual Result<std::vector<FlowRecord>> Flows(int limit) = 0;
  /// Removes the flow with all that belongs to it; nothing if there is none.
  virtual Status Delete(const std::string& flow) = 0;

  /// Another process asks the one that works on the flow to stop.
  virtual Status RequestCancel(const std::string& flow, bool wanted) = 0;
  virtual Result<bool> CancelRequested(const std::string& flow) = 0;

  /// kInvalidInput when the flow has that number already.
  virtual Status Put(const std::string& flow, const Checkpoint& checkpoint) = 0;
  /// The checkpoint of that number; without one the last.
  virtual Result<std::optional<Checkpoint>> Get(const std::string& flow,
                                                std::optional<int64_t> number) = 0;
  /// In the order of their numbers.
  virtual Result<std::vector<Checkpoint>> List(const std::string& flow) = 0;
  /// Replaces a write of the same task, kind and index.
  virtual Status PutWrite(const std::string& flow, int64_t number, const PendingWrite& write) = 0;
  /// By task, kind and index.
  virtual Result<std::vector<PendingWrite>> Writes(const std::string& flow, int64_t number) = 0;

  /// Held while a process works on a flow; see RunningMark of the store.
  class Mark {
   public:
    virtual ~Mark() = default;
  };
  /// kInvalidInput when another process or flow object works on it.
  virtual Result<std::unique_ptr<Mark>> Occupy(const std::string& flow) = 0;
};

}  // namespace atunner::workflow
