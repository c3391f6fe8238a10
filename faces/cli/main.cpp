#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "atunner/base/closest_name.h"
#include "faces/cli/cli.h"
#include "faces/cli/field_paths.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// CLI11's own say every digit of the largest number.
CLI::Validator Above(const char* name, const char* what, bool (*holds)(double)) {
  return {[=](std::string& text) {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(text, value);
            return read && holds(value) ? std::string() : "'" + text + "' is " + what;
          },
          name};
}
const CLI::Validator kPositive = Above("POSITIVE", "not above 0",
                                       [](double value) { return value > 0; });
const CLI::Validator kNotNegative = Above("NONNEGATIVE", "below 0",
                                          [](double value) { return value >= 0; });

std::string CommandLine(int argc, char** argv) {
  std::string text = "atunner";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

int Finish(const Result<int>& result, const Common& common) {
  if (result) return *result;
  const Error error = WithFlags(result.error());
  if (common.json) {
    const Json json{{"error",
                     {{"code", Name(error.code)},
                      {"what", error.what},
                      {"where", error.where},
                      {"hint", error.hint}}}};
    PrintJson(json);
  } else {
    std::fprintf(stderr, "atunner: %s\n", error.ToString().c_str());
  }
  return ExitCode(error.code);
}

void AddCommon(CLI::App* verb, Common& common) {
  verb->add_flag("--json", common.json, "one JSON object on standard output");
  verb->add_flag("--quiet", common.quiet, "no progress");
  verb->add_flag("--explain", common.explain, "say why, decision by decision");
  verb->add_option("--store", common.store, "file that remembers runs and trials");
}

void AddCompileTimeout(CLI::App* verb, TuneFlags& flags) {
  verb->add_option("--compile-timeout", flags.compile_timeout, "seconds one candidate may compile")
      ->check(kPositive);
}

void AddTune(CLI::App* verb, TuneFlags& flags) {
  verb->add_option("--target-gpu", flags.target, "a GPU of `atunner devices`, or auto");
  verb->add_option("--strategy", flags.strategy,
                   "search strategy (`auto` unless you know better; a wrong name lists them)");
  verb->add_option("--where", flags.where,
                   "only configurations for which this holds: \"tile_m == 128 and stages > 3\"");
  verb->add_option("--budget", flags.budget, "90s, 5m, 200 (trials), or both: 200,5m")
      ->capture_default_str();
  verb->add_option("--seed", flags.seed, "seed of search and inputs")->check(kNotNegative);
  verb->add_option("--objective", flags.objective,
                   "time, memory or energy; of several (time,energy) the front is shown");
  verb->add_option("--devices", flags.devices,
                   "GPUs that judge in parallel: all, or their numbers (0,1)");
  verb->add_option("--out", flags.out, "folder for the artifact");
  verb->add_flag("--virtual", flags.force_virtual, "predict, even if the GPU is in this machine");
  verb->add_flag("--fresh", flags.fresh,
                 "forget what an earlier run of the same command found, and learn from no other");
  verb->add_flag("--no-transfer", flags.no_transfer,
                 "learn from no run of the same kernel at other sizes or on other GPUs");
  verb->add_flag("--no-baselines", flags.no_baselines,
                 "time neither the plain kernel nor libraries beside the winner");
  verb->add_option("--compile-threads", flags.compile_threads, "0 = all cores");
  AddCompileTimeout(verb, flags);
}

/// The verbs, each with its flags and what it does.
class Verbs {
 public:
  explicit Verbs(std::string command) : command_(std::move(command)) {
    app_.set_version_flag("--version", "atunner " ATUNNER_VERSION);
    app_.require_subcommand(1);
    AddTuning();
    AddBenchmarks();
    AddChecks();
    AddArtifacts();
    AddMachine();
    AddRuns();
  }

  int Run(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "sanitize") argc = TakeProgram(argc, argv);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app_.exit(error);
      if (app_.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') return Unknown(argv[1]);
      std::fprintf(stderr, "atunner: %s\n  hint: `atunner --help` or `atunner VERB --help`\n",
                   error.what());
      return 2;
    }
    for (const auto& [verb, run] : runs_) {
      if (*verb) return Finish(run(), common_);
    }
    return 2;  // a verb is required, so that one was found
  }

 private:
  /// What stands behind `--` is a program's command line. How many arguments are left.
  int TakeProgram(int argc, char** argv) {
    char** const end = argv + argc;
    char** const dashes = std::find_if(
        argv, end, [](const char* text) { return std::string_view(text) == "--"; });
    if (dashes != end) sanitize_.program.assign(dashes + 1, end);
    return static_cast<int>(dashes - argv);
  }
  int Unknown(const std::string& verb) const {
    std::vector<std::string> verbs;
    for (const CLI::App* each : app_.get_subcommands({})) verbs.push_back(each->get_name());
    const std::string near = ClosestName(verb, verbs);
    std::fprintf(
        stderr, "atunner: unknown verb '%s'\n  hint: %s\n", verb.c_str(),
        near.empty() ? "`atunner --help` lists them" : ("did you mean '" + near + "'?").c_str());
    return 2;
  }
  CLI::App* Add(const char* name, const char* meaning, std::function<Result<int>()> run) {
    CLI::App* verb = app_.add_subcommand(name, meaning);
    AddCommon(verb, common_);
    runs_.emplace_back(verb, std::move(run));
    return verb;
  }

  CLI::Option* AddOperator(CLI::App* verb, std::string& name, std::string& dtype,
                           std::vector<std::string>& attributes, std::string& accuracy) {
    verb->add_option("--dtype", dtype, "float32, float16 or bfloat16");
    verb->add_option("--attr", attributes, "operator attribute, key=value");
    verb->add_option("--accuracy", accuracy,
                     "strict: no further from float64 than the plain kernel; default: 4 times; "
                     "fast: TF32 and the like");
    return verb->add_option("--operator", name,
                            "operator to compute (`atunner operators` lists them)");
  }

  void AddTuning() {
    CLI::App* verb = Add("optimize", "tune an operator, or a graph of operators",
                         [this] { return Optimize(optimize_, common_, command_); });
    CLI::Option* name = AddOperator(verb, optimize_.operator_name, optimize_.dtype,
                                    optimize_.attributes, optimize_.accuracy);
    CLI::Option* shapes = verb->add_option("--input-shape", optimize_.shapes,
                                           "shapes, as the operator asks for them")
                              ->needs(name);
    CLI::Option* graph = verb->add_option("--graph", optimize_.graph,
                                          "file.atg: a graph in text form (docs/graph.md)");
    graph->excludes(name)->excludes(shapes);
    verb->add_option("--dim", optimize_.sizes,
                     "size of a graph's symbol, B=4096, or several, B=1,64,4096: an artifact for "
                     "each; else the end of "
                     "its range")
        ->needs(graph);
    AddTune(verb, optimize_.tune);

    verb = Add("tune", "tune a kernel described by a .toml, or by a Kernel Tuner / BAT T1 .json",
               [this] { return TuneFile(kernel_file_, tune_, common_, command_); });
    verb->add_option("file", kernel_file_, "kernel.toml or space.json")->required();
    AddTune(verb, tune_);

    verb = Add("predict", "times of listed configurations on the virtual GPU, without judging them",
               [this] { return Predict(predict_, common_); });
    verb->add_option("file", predict_.file,
                     "kernel.cu, kernel.toml or space.json; without it, --operator or --graph");
    verb->add_option("--kernel", predict_.kernel, "which kernel of a .cu");
    verb->add_option("--operator", predict_.optimize.operator_name,
                     "operator (`atunner operators` lists them)");
    verb->add_option("--input-shape", predict_.optimize.shapes,
                     "shapes, as the operator asks for them");
    verb->add_option("--dtype", predict_.optimize.dtype, "float32, float16 or bfloat16");
    verb->add_option("--attr", predict_.optimize.attributes, "operator attribute, key=value");
    verb->add_option("--graph", predict_.optimize.graph,
                     "file.atg: a graph in text form (docs/graph.md)");
    verb->add_option("--dim", predict_.optimize.sizes,
                     "size of a graph's symbol, B=4096; else the end of its range");
    verb->add_option("--target-gpu", predict_.optimize.tune.target,
                     "a GPU of `atunner devices`; A100@765: at 765 MHz")
        ->required();
    verb->add_option(
        "--configs", predict_.configurations,
        "JSON list of configurations, or a run's export; default: the default configuration");
    AddCompileTimeout(verb, predict_.optimize.tune);
    verb->add_flag("--counts", predict_.counts,
                   "with --json: what was counted, beside each estimate");

    verb = Add("hardware-optimize", "tune a kernel in a .cu file as it is",
               [this] { return HardwareOptimize(source_, common_, command_); });
    verb->add_option("--source", source_.source, "the .cu file")->required();
    verb->add_option("--kernel", source_.kernel, "which kernel of the file");
    verb->add_flag("--auto-tune", source_.auto_tune,
                   "tune what was found; without it, only say what was found");
    AddTune(verb, source_.tune);
  }

  void AddBenchmarks() {
    CLI::App* verb = Add("benchmark",
                         "an operator at usual sizes against plain kernel and vendor library",
                         [this] { return Benchmark(benchmark_, common_); });
    AddOperator(verb, benchmark_.operator_name, benchmark_.dtype, benchmark_.attributes,
                benchmark_.accuracy)
        ->required();
    verb->add_option("--input-shape", benchmark_.shapes, "one size instead of the usual ones");
    verb->add_option("--target-gpu", benchmark_.target, "a GPU of `atunner devices`, or auto");
    verb->add_flag("--virtual", benchmark_.force_virtual,
                   "predict, even if the GPU is in this machine");
    verb->add_flag("--performance-mode", benchmark_.performance_mode,
                   "tune each size before comparing");

    SearchBenchFlags& flags = search_bench_;
    verb = Add("search-bench", "score search strategies on recorded tuning spaces",
               [this] { return SearchBench(search_bench_, common_); });
    verb->add_option("--spaces", flags.spaces,
                     "folder of Kernel Tuner cache files (*.json, *.json.gz)")
        ->required();
    verb->add_option("--strategy", flags.strategies, "strategies, or all; random is always beside");
    verb->add_option("--repeats", flags.repeats, "runs per space, each with its own seed")
        ->check(CLI::Range(1, 10000));
    verb->add_option("--seed", flags.seed, "seed of the first run")->check(kNotNegative);
    verb->add_option("--batch", flags.batch, "configurations asked for at once")
        ->check(CLI::Range(1, 10000));
    verb->add_option(
            "--ahead", flags.ahead,
            "configurations that are asked for before the result of an earlier one is told")
        ->check(CLI::Range(0, 10000));
    verb->add_flag("--transfer", flags.transfer,
                   "with and without what a run on another space of the kernel found");
    verb->add_option("--noise", flags.noise,
                     "relative noise of one sample: how good the winner is in truth")
        ->check(CLI::Range(0.0, 1.0));
    verb->add_option("--train", flags.train,
                     "train the policy of ppo on the spaces, write its weights to this file");
    verb->add_flag("--leave-one-out", flags.leave_one_out,
                   "score ppo on each kernel, trained on the other kernels");
    verb->add_option("--iterations", flags.iterations, "of training")->check(CLI::Range(1, 100000));
  }

  void AddSubject(CLI::App* verb, SubjectFlags& flags) {
    verb->add_option("file", flags.file,
                     "kernel.cu, kernel.toml, T1 .json or an artifact's folder");
    verb->add_option("--kernel", flags.kernel, "which kernel of a .cu");
    verb->add_option("--operator", flags.operation.operator_name, "an operator instead of a file");
    verb->add_option("--input-shape", flags.operation.shapes,
                     "shapes, as the operator asks for them");
    verb->add_option("--dtype", flags.operation.dtype, "float32, float16 or bfloat16");
    verb->add_option("--attr", flags.operation.attributes, "operator attribute, key=value");
    verb->add_option("--config", flags.config,
                     "parameters, k=v,k=v; the others keep their defaults");
    verb->add_option("--target-gpu", flags.target,
                     "GPU to compile and check for; auto: the one here, or A100");
    verb->add_option("--timeout", flags.timeout_seconds, "seconds one launch may take")
        ->check(kPositive);
  }

  void AddChecks() {
    CLI::App* verb = Add(
        "sanitize", "find hazards: bounds, uninitialised memory, races, barriers (virtual GPU)",
        [this] { return Sanitize(sanitize_, common_); });
    AddSubject(verb, sanitize_.subject);
    verb->footer(
        "atunner sanitize [options] -- PROGRAM ARGUMENTS: all that an executable of nvcc's "
        "launches");
    verb->add_option("--check", sanitize_.checks,
                     "any of memory,init,race,sync; memory is always among them");
    verb->add_option("--max-reports", sanitize_.max_reports, "most hazards to print");
    verb->add_option("--max-instructions", sanitize_.max_instructions,
                     "warp instructions after which a block counts as endless")
        ->check(kPositive);
    verb = Add(
        "counts",
        "what each line of a kernel costs: instructions, sectors, bank conflicts (virtual GPU)",
        [this] { return CountLines(counts_, common_); });
    AddSubject(verb, counts_);
    AddRun();
  }

  void AddRun() {
    CLI::App* verb = Add(
        "run", "launch a kernel of a .ptx or .cu once, with these arguments, and show its memory",
        [this] { return RunKernel(run_kernel_, common_); });
    verb->add_option("file", run_kernel_.file, ".ptx or .cu")->required();
    verb->add_option("--kernel", run_kernel_.kernel, "which kernel of the file");
    verb->add_option("--grid", run_kernel_.grid, "blocks: x, x,y or x,y,z")->capture_default_str();
    verb->add_option("--block", run_kernel_.block, "threads of a block, likewise")
        ->capture_default_str();
    verb->add_option("--cluster", run_kernel_.cluster, "blocks of a cluster, likewise")
        ->capture_default_str();
    verb->add_option("--shared", run_kernel_.shared_bytes, "bytes of dynamic shared memory");
    verb->add_flag("--cooperative", run_kernel_.cooperative, "all blocks at once");
    verb->add_option("--arg", run_kernel_.arguments,
                     "one for each parameter: 5, f32=1.5, f32:1,2,3 (memory), f32[100] "
                     "(unwritten), f32[100]:0, f32@file")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    verb->add_option("--target-gpu", run_kernel_.target,
                     "GPU to compile for and to be; auto: the one here, or A100");
    verb->add_flag("--real", run_kernel_.real,
                   "on the GPU of this machine, without checks, instead of the virtual one");
    verb->add_option("--check", run_kernel_.checks,
                     "any of memory,init,race,sync; memory is always among them");
    verb->add_option("--timeout", run_kernel_.timeout_seconds, "seconds the launch may take")
        ->check(kPositive);
    verb->add_option("--max-instructions", run_kernel_.max_instructions,
                     "warp instructions after which a block counts as endless")
        ->check(kPositive);
    verb->add_option("--show", run_kernel_.show, "elements of each memory to show")
        ->capture_default_str();
  }

  void AddArtifacts() {
    CLI::App* verb = Add("show", "what an artifact is",
                         [this] { return ShowArtifact(folder_, common_); });
    verb->add_option("folder", folder_, "artifact folder")->required();
    verb = Add("verify", "judge an artifact again, with inputs nobody saw before", [this] {
      return VerifyArtifact(folder_, verify_target_, verify_virtual_, verify_accuracy_, common_);
    });
    verb->add_option("folder", folder_, "artifact folder")->required();
    verb->add_option("--target-gpu", verify_target_, "GPU to verify on; default: the artifact's");
    verb->add_flag("--virtual", verify_virtual_,
                   "on the virtual GPU, even if the GPU is in this machine");
    verb->add_option("--accuracy", verify_accuracy_,
                     "strict, default or fast instead of the artifact's own policy");
  }

  void AddMachine() {
    CLI::App* verb = Add("devices", "GPUs of this machine and the table of known ones",
                         [this] { return Devices(probe_, calibrate_, common_); });
    verb->add_flag("--probe", probe_, "measure the GPU of this machine and keep its profile");
    verb->add_flag("--calibrate", calibrate_,
                   "with --probe: fit the time model's constants to micro-benchmarks");
    Add("doctor", "what was found on this machine, what is missing, how to get it",
        [this] { return Doctor(common_); });
    verb = Add("operators", "operators, their attributes, and what tunes them",
               [this] { return Operators(operator_names_, common_); });
    verb->add_option("names", operator_names_,
                     "those whose names contain one of these; without it all");
    verb = Add("test", "compile, run and verify one kernel per operator on this machine", [this] {
      if (test_.target.empty()) test_.target = test_.full ? "auto" : "A100";
      return test_.operators ? TestOperators(test_, common_) : SelfTest(common_, test_.target);
    });
    verb->add_option("--target-gpu", test_.target,
                     "GPU to test for, or auto; without it A100, with --full auto");
    CLI::Option* all = verb->add_flag(
        "--operators", test_.operators,
        "every operator and gradient, in every type, at three shapes each");
    verb->add_flag("--full", test_.full, "at sizes for a GPU")->needs(all);
    verb->add_option("--only", test_.only, "operators whose names contain one of these")
        ->needs(all)
        ->delimiter(',');
    verb->add_option("--dtype", test_.dtypes, "of these types alone")->needs(all)->delimiter(',');
    verb->add_flag("--apart", test_.apart, "pointwise operators one by one, not twelve to a task")
        ->needs(all);
    verb->add_flag("--virtual", test_.force_virtual,
                   "on the virtual GPU, even if the GPU is in this machine")
        ->needs(all);
    verb->add_option("--devices", test_.devices,
                     "GPUs that share the tasks: all, or their numbers (0,1)")
        ->needs(all);
    verb->add_option("--jobs", test_.jobs,
                     "tasks at a time; 0 = one per core, at most four to a GPU")
        ->needs(all)
        ->check(CLI::Range(0, 1024));
    verb->add_option("--limit", test_.limit_seconds, "seconds that one task may take")
        ->needs(all)
        ->check(kPositive);
    verb->add_option("--seconds", test_.total_seconds,
                     "what is not begun by then is not run; 0 = no limit")
        ->needs(all)
        ->check(kNotNegative);
  }

  void AddRuns() {
    Add("history", "earlier runs", [this] { return History(common_); });
    CLI::App* verb = Add("report", "what a run found",
                         [this] { return ShowReport(run_, report_format_, report_out_, common_); });
    verb->add_option("run", run_, "run, prefix of one, or last");
    verb->add_option("--format", report_format_, "text, md, html or json");
    verb->add_option("--out", report_out_, "file to write instead of printing");
    verb = Add("export", "a run's trials",
               [this] { return Export(run_, export_format_, common_); });
    verb->add_option("run", run_, "run, prefix of one, or last");
    verb->add_option("--format", export_format_, "csv or json");
  }

  CLI::App app_{
      "atunner: give it an operator, get back a faster kernel for your GPU, verified, with the "
      "evidence"};
  std::vector<std::pair<CLI::App*, std::function<Result<int>()>>> runs_;
  std::string command_;
  Common common_;
  OptimizeFlags optimize_;
  TuneFlags tune_;
  std::string kernel_file_;
  SourceFlags source_;
  PredictFlags predict_;
  BenchmarkFlags benchmark_;
  SearchBenchFlags search_bench_;
  SanitizeFlags sanitize_;
  SubjectFlags counts_;
  RunFlags run_kernel_;
  std::string folder_;
  std::string verify_target_;
  bool verify_virtual_ = false;
  std::string verify_accuracy_;
  bool probe_ = false;
  bool calibrate_ = false;
  std::vector<std::string> operator_names_;
  OperatorTestFlags test_;
  std::string run_ = "last";
  std::string report_format_ = "text";
  std::string report_out_;
  std::string export_format_ = "csv";
};

int Main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error with a message, not a death
  if (argc == 4 && std::string_view(argv[1]) == "__runner")
    return RunnerMain(argv[2], std::atoi(argv[3]));
  if (argc == 2 && std::string_view(argv[1]) == "__compiler") return CompilerMain();
  return Verbs(CommandLine(argc, argv)).Run(argc, argv);
}

}  // namespace
}  // namespace atunner::cli

int main(int argc, char** argv) {
  int code = 0;
  bool written = true;
  try {
    code = atunner::cli::Main(argc, argv);
  } catch (const std::filesystem::filesystem_error& error) {  // a working folder that is gone, say
    std::fprintf(stderr, "atunner: %s\n", error.what());
    return atunner::ExitCode(atunner::ErrorCode::kInvalidInput);
  } catch (const std::system_error&) {  // fmt's, of standard output
    written = false;
  }
  written &= std::fflush(stdout) == 0;
  if (written) return code;
  std::fprintf(stderr, "atunner: standard output cannot be written: %s\n", std::strerror(errno));
  return atunner::ExitCode(atunner::ErrorCode::kUnavailable);
}
