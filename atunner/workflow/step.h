// Runs the tasks of one super-step: one after the other in the caller's thread, or in a pool of
// threads, with retries and time-outs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/workflow/graph.h"

namespace atunner::workflow {

/// One task of a super-step.
struct StepTask {
  const Node* node = nullptr;
  const Json* input = nullptr;  ///< valid until the step ends
  std::vector<Json> answers = {};
  /// The result, once there is one. A task that was not run because the flow is to stop has none.
  std::optional<Result<NodeResult>> result = std::nullopt;
};

struct StepSettings {
  int threads = 1;
  std::stop_token stop;   ///< tasks are told to stop, and no further one begins
  std::stop_token drain;  ///< no further task begins
  Clock* clock = nullptr;
  /// Calls a node; `task` is its position in the step.
  std::function<Result<NodeResult>(const Node&, const NodeContext&, size_t task)> call;
  std::function<void(size_t task, Json value)> emit;
  std::function<void(size_t task)> on_start;
  std::function<void(size_t task, const Error&)> on_retry;
  /// A task has ended for good. An error ends the step: no further task begins.
  std::function<Status(size_t task)> on_end;
};

class StepRunner {
 public:
  explicit StepRunner(StepSettings settings);
  ~StepRunner();  ///< waits for nodes that ignored their stop tokens
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  /// Runs the tasks that have no result. True if a node whose time is over may still read `state`,
  /// which must then not be changed any more.
  Result<bool> Run(const std::shared_ptr<const State>& state, std::vector<StepTask>& tasks);

 private:
  struct Pool;
  class PoolStep;
  bool MustStop() const {
    return settings_.stop.stop_requested() || settings_.drain.stop_requested();
  }
  Status RunHere(const State& state, std::vector<StepTask>& tasks, size_t at);
  Result<bool> RunInPool(const std::shared_ptr<const State>& state, std::vector<StepTask>& tasks);
  void SleepBefore(const RetryPolicy& policy, int attempt) const;

  StepSettings settings_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace atunner::workflow
