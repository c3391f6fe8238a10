// Progress of jobs: plain values that own their contents and can become JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/requests/stage.h"
#include "atunner/model/json/json.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/trial/trial.h"

namespace atunner::jobs {

/// Something was inferred or left out.
struct NoteEvent {
  std::string text;
};
/// A request of several sizes goes on with the next one.
struct SizeStartedEvent {
  Dims dims;
};
/// A divided schedule goes on with the next of its parts; 1, 2, … of `count`.
struct PartStartedEvent {
  size_t number = 0;
  size_t count = 0;
};
struct RunStartedEvent {
  uint64_t space_size = 0;  ///< valid configurations
  Budget budget;
  Evidence evidence = Evidence::kPredicted;
  std::string text;    ///< what earlier runs the search learns from; "" for none
  std::string run;     ///< its id in the store
  std::string device;  ///< full name
};
struct BaselineEvent {
  Baseline baseline;
};
struct TrialEvent {
  Trial trial;
  std::string configuration;  ///< "tile=16, unroll=4"
  std::optional<double> best_ns;
  int64_t trials_done = 0;
  double seconds = 0;  ///< since the session began
};
/// The best candidates are examined again.
struct FinalistsEvent {
  std::string text;
};
struct RunStoppedEvent {
  std::string reason;
};
/// The value of a stage that the request asked to see.
struct StageEvent {
  Stage stage = Stage::kGraph;
  std::string task;
  Json value;        ///< for programs
  std::string text;  ///< for people
};
/// A task is tuned: its artifact and its report are written.
struct RunFinishedEvent {
  RunResult result;
};
struct KernelSanitizedEvent {
  SanitizedKernel result;
};
struct KernelPredictedEvent {
  PredictedKernel result;
};
/// A benchmark begins.
struct BenchmarkStartedEvent {
  std::string gpu;
  Evidence evidence = Evidence::kPredicted;
};
struct BenchmarkRowEvent {
  BenchmarkRow row;
};
/// A job over several kernels begins with one of them.
struct KernelStartedEvent {
  std::string kernel;
};
/// A kernel among several is left out.
struct KernelRefusedEvent {
  std::string kernel;
  Error error;
};
/// A task of the operators' test failed, or another 200 are done.
struct OperatorCaseEvent {
  std::string failure;  ///< "" = it passed
  size_t done = 0;
  size_t all = 0;
};

using Event =
    std::variant<NoteEvent, SizeStartedEvent, PartStartedEvent, RunStartedEvent, BaselineEvent,
                 TrialEvent, FinalistsEvent, RunStoppedEvent, StageEvent, RunFinishedEvent,
                 KernelStartedEvent, KernelSanitizedEvent, KernelPredictedEvent,
                 BenchmarkStartedEvent, BenchmarkRowEvent, KernelRefusedEvent, OperatorCaseEvent>;

/// An object with the key "event": the name of the alternative, as "trial".
Json ToJson(const Event& event);

/// Called on the job's own thread, one event at a time.
using EventSink = std::function<void(const Event&)>;

}  // namespace atunner::jobs
