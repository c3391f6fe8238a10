// Typed requests: one for each kind of job. Faces make them of flags, JSON or arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/jobs/requests/stage.h"
#include "atunner/jobs/requests/target.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/trial.h"
#include "atunner/tune/objectives.h"

namespace atunner::jobs {

/// A graph in text form (docs/graph.md).
struct GraphText {
  std::string text;
  std::string name;  ///< what messages call the text: its file
};

/// A task: an operator of the library with shapes, or a graph with sizes.
struct TaskRequest {
  std::string operator_name;
  std::vector<std::vector<int64_t>> shapes;  ///< as the operator's signature lists them
  DType dtype = DType::kFloat32;
  Attributes attributes;
  std::optional<GraphText> graph;  ///< instead of an operator
  /// Sizes of the graph's symbols. Several sizes of a symbol are several tasks. A symbol without a
  /// size takes the upper end of its range.
  std::vector<std::pair<std::string, std::vector<int64_t>>> dims;
  Accuracy accuracy = Accuracy::kDefault;
};

/// How to search, on which device, and where to put the result.
struct TuningOptions {
  TargetChoice target;
  Thoroughness thoroughness = Thoroughness::kSearch;
  std::string strategy = "auto";
  std::vector<std::string> where;  ///< conditions on parameters: "tile_m == 128 and stages > 3"
  Budget budget{.trials = 60, .seconds = {}};
  std::vector<Objective> objectives = {Objective::kTime};  ///< the first one decides who wins
  DeviceSelection devices;
  uint64_t seed = 1;
  Path out;                 ///< folder of the artifact; empty: a folder of Services::runs
  bool fresh = false;       ///< delete the run of an earlier equal request, and learn from no run
  bool transfer = true;     ///< learn from runs of the same kernel at other sizes or on other GPUs
  bool baselines = true;    ///< compare the winner with the plain kernel and with libraries
  int compile_threads = 0;  ///< 0 = one per core
  double compile_timeout_seconds = kCompileTimeoutSeconds;  ///< of one candidate
  std::string command;  ///< kept in the run's record, so that a person can repeat it
  Inspection inspection;
};

/// Tunes an operator or a graph; at several sizes one after the other.
struct OptimizeRequest {
  TaskRequest task;
  TuningOptions tuning;
};

/// Tunes a kernel that a .toml or a Kernel Tuner / BAT T1 .json describes.
struct TuneRequest {
  Path file;
  TuningOptions tuning;
};

/// Tunes a kernel in a .cu file as it is, or only says what was found in it.
struct HardwareOptimizeRequest {
  Path source;
  std::string kernel;      ///< which kernel of the file; empty: the only one
  bool auto_tune = false;  ///< false: only say what was found
  TuningOptions tuning;
  Dims sizes = {};  ///< stated beside the source's own
};

/// One kernel to run on the virtual GPU.
struct KernelRequest {
  Path file;                        ///< .cu, .toml, T1 .json, or the folder of an artifact
  std::string kernel;               ///< which kernel of a .cu
  std::optional<TaskRequest> task;  ///< an operator instead of a file
  std::string configuration;        ///< "k=v,k=v"; the other parameters keep their defaults
  /// The GPU to compile and check for; "auto": the GPU of this machine, else the artifact's, else
  /// A100.
  std::string gpu = "auto";
  double timeout_seconds = 60;  ///< of one launch
};

/// Looks for hazards on the virtual GPU.
struct SanitizeRequest {
  KernelRequest kernel;
  uint8_t groups = kAllHazards;  ///< bits of HazardGroup
  /// Warp instructions of a block; more count as an endless loop.
  uint64_t max_instructions = uint64_t{1} << 28;
};

/// Counts what each line of a kernel's source costs on the virtual GPU.
struct CountRequest {
  KernelRequest kernel;
};

/// Predicts the times of listed configurations without judging them.
struct PredictRequest {
  Path file;                        ///< .cu, .toml or T1 .json
  std::string kernel;               ///< which kernel of a .cu; empty: all
  std::optional<TaskRequest> task;  ///< an operator or a graph instead of a file
  std::string gpu;
  /// A file with a JSON list of configurations, or a run's export; empty: the default one.
  Path configurations;
  bool counts = false;  ///< with what was counted
  double compile_timeout_seconds = kCompileTimeoutSeconds;
};

/// Compares an operator with the plain kernel and the vendor's library.
struct BenchmarkRequest {
  TaskRequest task;  ///< without shapes: at usual ones
  TargetChoice target;
  bool tune = false;  ///< tune each size before comparing, with 60 trials
};

/// Reads what a run found from the store.
struct ReportRequest {
  std::string run = "last";  ///< id, prefix of one, or "last"
  enum class Format : uint8_t { kText, kMarkdown, kHtml, kJson } format = Format::kText;
};

/// Judges an artifact's binaries again, with new inputs.
struct VerifyRequest {
  Path folder;
  TargetChoice target{.gpu = "", .force_virtual = false};  ///< without a name: the artifact's
  std::optional<Accuracy> accuracy;                        ///< instead of the artifact's own policy
};

/// Verifies every operator and gradient.
struct OperatorTestRequest {
  bool full = false;              ///< sizes for a GPU
  bool apart = false;             ///< pointwise operators one by one
  std::vector<std::string> only;  ///< parts of names; empty: all
  std::vector<DType> dtypes;      ///< empty: float32, float16, bfloat16, float64, int32
  TargetChoice target;
  DeviceSelection devices;
  int parallel = 0;           ///< tasks at a time; 0 = one per core, at most four to a real GPU
  double limit_seconds = 60;  ///< of one task
  double total_seconds = 0;   ///< a task that has not begun by then is not run; 0 = no limit
};

}  // namespace atunner::jobs
