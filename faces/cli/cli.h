// The verbs of the command line. Each returns an exit code; errors are rendered once, in main.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/intake/bare/bare_source.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/model/json/json.h"
#include "atunner/report/report.h"
#include "atunner/store/store.h"
#include "atunner/tune/tune_session.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {

/// Flags every verb has.
struct Common {
  bool json = false;
  bool quiet = false;
  bool explain = false;
  std::string store;
};

/// How to search, on what, and where to put the result: flags of every verb that tunes.
struct TuneFlags {
  std::string target = "auto";
  std::string strategy = "auto";
  std::vector<std::string> where;  ///< conditions on the parameters, besides the template's own
  std::string budget = "60 trials";
  std::string objective = "time";
  std::string devices;  ///< "", "all" or "0,1"
  uint64_t seed = 1;
  std::string out;
  bool force_virtual = false;
  bool fresh = false;
  bool no_transfer = false;
  bool no_baselines = false;
  int compile_threads = 0;
  double compile_timeout = kCompileTimeoutSeconds;
};

struct OptimizeFlags {
  std::string operator_name;
  std::vector<std::string> shapes;
  std::string dtype = "float32";
  std::vector<std::string> attributes;
  std::string accuracy = "default";  ///< strict, default or fast
  std::string graph;                 ///< a file in the graphs' text form, instead of an operator
  std::vector<std::string> sizes;    ///< of its symbols: B=4096, or B=1,64,4096
  TuneFlags tune;
};

struct SourceFlags {
  std::string source;
  std::string kernel;
  bool auto_tune = false;
  TuneFlags tune;
};

struct PredictFlags {
  std::string file;            ///< .cu, .toml or T1 .json; empty: the operator
  std::string kernel;          ///< which one of a .cu
  OptimizeFlags optimize;      ///< operator, shapes or graph, target
  std::string configurations;  ///< file; empty: the default configuration
  bool counts = false;
};

/// What `sanitize` and `counts` run, and on which GPU's terms.
struct SubjectFlags {
  std::string file;         ///< .cu, .toml, T1 .json, or an artifact's folder; empty: the operator
  std::string kernel;       ///< which one of a .cu
  OptimizeFlags operation;  ///< an operator by name
  std::string config;       ///< "k=v,k=v" instead of the default configuration's values
  std::string target = "auto";
  double timeout_seconds = 60;
};

struct SanitizeFlags {
  SubjectFlags subject;
  std::vector<std::string> program;  ///< instead: an executable and its arguments
  std::string checks = "memory,init,race,sync";
  size_t max_reports = 100;
  /// Warp instructions of a block: more count as an endless loop
  uint64_t max_instructions = uint64_t{1} << 28;
};

/// One launch with arguments of the command line.
struct RunFlags {
  std::string file;    ///< .ptx or .cu
  std::string kernel;  ///< which one of the file
  std::string grid = "1", block = "1", cluster = "1";
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::string> arguments;  ///< see launch_argument.h
  std::string target = "auto";
  bool real = false;  ///< on the GPU of this machine
  std::string checks = "memory,init,race,sync";
  double timeout_seconds = 60;
  uint64_t max_instructions = uint64_t{1} << 28;
  size_t show = 16;  ///< elements of each memory
};

struct BenchmarkFlags {
  std::string operator_name;
  std::vector<std::string> shapes;  ///< empty: usual ones
  std::string dtype = "float32";
  std::vector<std::string> attributes;
  std::string accuracy = "default";
  std::string target = "auto";
  bool force_virtual = false;
  bool performance_mode = false;  ///< tune before comparing
};

struct SearchBenchFlags {
  std::string spaces;
  std::vector<std::string> strategies = {"auto"};
  int repeats = 30;
  uint64_t seed = 1;
  size_t batch = 1;
  size_t ahead = 0;
  bool transfer = false;  ///< with and without the run of another space of the same kernel
  /// Of one sample, relative: how good the declared winner is in truth
  double noise = 0;
  std::string train;           ///< file for the weights of a policy trained on the spaces
  bool leave_one_out = false;  ///< score `ppo` on each kernel with a policy trained on the others
  int iterations = 150;        ///< of training
};

/// `test --operators`.
struct OperatorTestFlags {
  bool operators = false;           ///< all of them; without it, one per family
  bool full = false;                ///< sizes for a GPU
  bool apart = false;               ///< pointwise operators one by one
  std::vector<std::string> only;    ///< parts of names; empty: all
  std::vector<std::string> dtypes;  ///< empty: float32, float16, bfloat16, float64, int32
  std::string target;               ///< empty: the GPU here at full sizes, else A100
  std::string devices;              ///< "", "all" or "0,1"
  bool force_virtual = false;
  int jobs = 0;               ///< 0 = one per core; at most four to a real GPU
  double limit_seconds = 60;  ///< of one task
  double total_seconds = 0;   ///< what is not begun by then is not run, and counted; 0 = no limit
};

/// Searches, verifies, compares and reports: what every tuning verb ends in.
Result<int> RunTuning(const ScheduleTemplate& schedule, const Target& target,
                      const TuneFlags& flags, const Common& common, const std::string& command);
/// One after another, each with the whole budget; --out holds an artifact for each size.
Result<int> RunTuningAtSizes(std::span<const std::unique_ptr<ScheduleTemplate>> schedules,
                             const Target& target, const TuneFlags& flags, const Common& common,
                             const std::string& command);

Result<int> Optimize(const OptimizeFlags& flags, const Common& common, const std::string& command);
/// A kernel TOML or a T1 JSON.
Result<int> TuneFile(const std::string& file, const TuneFlags& flags, const Common& common,
                     const std::string& command);
/// Reads a .cu, .toml or .json as its ending says.
Result<UserKernel> ReadUserKernel(const std::string& file, const SourceOptions& options);
/// The kernels of a file that are meant: of a .cu that launches several all of them, unless
/// `kernel` names one.
std::vector<std::string> KernelsOf(const std::string& file, const std::string& kernel);
/// Its files found and checked; notes go to standard error.
Result<std::unique_ptr<ScheduleTemplate>> TemplateOf(UserKernel& kernel, const std::string& file,
                                                     const Common& common, bool verified = true);
Result<int> HardwareOptimize(const SourceFlags& flags, const Common& common,
                             const std::string& command);
/// Times of listed configurations on the virtual GPU. They are not judged.
Result<int> Predict(const PredictFlags& flags, const Common& common);
/// The spec of an operator as flags name it; used by every verb that takes --operator.
Result<KernelSpec> SpecOf(const OptimizeFlags& flags);
/// The policy by its name into the task. kInvalidInput for an unknown one.
Status ApplyAccuracy(const std::string& name, KernelSpec& spec);
Result<int> SelfTest(const Common& common, const std::string& target);
/// Exit code 1 when a case failed or was not run.
Result<int> TestOperators(const OperatorTestFlags& flags, const Common& common);
/// `probe`: measure the first GPU and keep its profile beside the table's; `calibrate`: and the
/// time model's constants.
Result<int> Devices(bool probe, bool calibrate, const Common& common);
Result<int> Benchmark(const BenchmarkFlags& flags, const Common& common);
/// Replays recorded spaces; exit code 1 when a strategy broke its contract (asked twice, stopped
/// early).
Result<int> SearchBench(const SearchBenchFlags& flags, const Common& common);
/// Looks for hazards on the virtual GPU; exit code 1 when there are any.
Result<int> Sanitize(const SanitizeFlags& flags, const Common& common);
/// Likewise for all that a program launches: `flags.program`, run with the virtual GPU in the place
/// of CUDA's.
Result<int> SanitizeProgram(const SanitizeFlags& flags, const Common& common);
/// Launches a kernel once and shows what is in its memory then; exit code 1 when it did not
/// complete without hazards.
Result<int> RunKernel(const RunFlags& flags, const Common& common);
/// What each line of the source costs, counted on the virtual GPU.
Result<int> CountLines(const SubjectFlags& flags, const Common& common);
/// The artifact's binaries as a candidate. Its check sizes come from the family, if one made it.
Result<CandidateKernel> CandidateOf(const Path& folder, const Artifact& artifact,
                                    const Target& target, Compiler& compiler);
Result<int> ShowArtifact(const std::string& folder, const Common& common);
/// Judges an artifact's binaries again, with inputs nobody saw before.
/// `accuracy`: by another policy than the artifact's own, unless empty.
Result<int> VerifyArtifact(const std::string& folder, const std::string& target, bool force_virtual,
                           const std::string& accuracy, const Common& common);
Result<int> Doctor(const Common& common);
/// Those whose names contain one of `names`; empty: all.
Result<int> Operators(const std::vector<std::string>& names, const Common& common);
Result<int> History(const Common& common);
/// Formats: "text" (a line per trial), "md", "html", "json". `out`: a file instead of standard
/// output.
Result<int> ShowReport(const std::string& run, const std::string& format, const std::string& out,
                       const Common& common);
Result<int> Export(const std::string& run, const std::string& format, const Common& common);

// Rendering, in render.cpp.
/// One line on standard output.
void PrintJson(const Json& json);
/// The run as a small table for the terminal.
std::string RenderTable(const Report& report);

/// What a finished run's record, trials and template say, for the report.
Report MakeReport(const RunRecord& run, const TuneResult& result, const KernelSpec& spec,
                  const ParameterSpace& space, const DeviceProfile& profile);
/// The same from the store alone. kInvalidInput for a run that was interrupted before it had a
/// summary.
Result<Report> ReportOf(Store& store, const RunRecord& run);

}  // namespace atunner::cli
