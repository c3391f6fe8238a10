#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "faces/cli/cli.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

std::string CommandLine(int argc, char** argv) {
  std::string text = "atunner";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

int Finish(const Result<int>& result, const Common& common) {
  if (result) return *result;
  const Error& error = result.error();
  if (common.json) {
    const Json json{
        {"error", {{"code", Name(error.code)}, {"what", error.what}, {"where", error.where}, {"hint", error.hint}}}};
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

void AddTune(CLI::App* verb, TuneFlags& flags) {
  verb->add_option("--target-gpu", flags.target, "a GPU of `atunner devices`, or auto");
  verb->add_option("--strategy", flags.strategy,
                   "search strategy (`auto` unless you know better; a wrong name lists them)");
  verb->add_option("--budget", flags.budget, "90s, 5m, 200 (trials), or both: 200,5m");
  verb->add_option("--seed", flags.seed, "seed of search and inputs")->check(CLI::NonNegativeNumber);
  verb->add_option("--out", flags.out, "folder for the artifact");
  verb->add_flag("--virtual", flags.force_virtual, "predict, even if the GPU is in this machine");
  verb->add_flag("--fresh", flags.fresh, "forget what an earlier run of the same command found");
  verb->add_option("--compile-threads", flags.compile_threads, "0 = all cores");
  verb->add_option("--compile-timeout", flags.compile_timeout, "seconds one candidate may compile")
      ->check(CLI::PositiveNumber);
}

void AddOptimize(CLI::App* verb, OptimizeFlags& flags) {
  verb->add_option("--operator", flags.operator_name, "operator to compute (`atunner operators` lists them)")
      ->required();
  verb->add_option("--input-shape", flags.shapes, "shapes, as the operator asks for them")->required();
  verb->add_option("--dtype", flags.dtype, "float32, float16 or bfloat16");
  verb->add_option("--attr", flags.attributes, "operator attribute, key=value");
  AddTune(verb, flags.tune);
}

void AddSearchBench(CLI::App* verb, SearchBenchFlags& flags) {
  verb->add_option("--spaces", flags.spaces, "folder of Kernel Tuner cache files (*.json, *.json.gz)")->required();
  verb->add_option("--strategy", flags.strategies, "strategies, or all; random is always beside");
  verb->add_option("--repeats", flags.repeats, "runs per space, each with its own seed")->check(CLI::Range(1, 10000));
  verb->add_option("--seed", flags.seed, "seed of the first run")->check(CLI::NonNegativeNumber);
  verb->add_option("--batch", flags.batch, "configurations asked for at once")->check(CLI::Range(1, 10000));
}

int Main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error with a message, not a death
  if (argc == 4 && std::string_view(argv[1]) == "__runner") return RunnerMain(argv[2], std::atoi(argv[3]));
  if (argc == 2 && std::string_view(argv[1]) == "__compiler") return CompilerMain();
  CLI::App app{"atunner: give it an operator, get back a faster kernel for your GPU, verified, with the evidence"};
  app.set_version_flag("--version", "atunner " ATUNNER_VERSION);
  app.require_subcommand(1);
  Common common;
  OptimizeFlags optimize;
  std::string run = "last";
  std::string format = "csv";
  std::string target = "A100";
  CLI::App* optimize_verb = app.add_subcommand("optimize", "tune an operator");
  AddOptimize(optimize_verb, optimize);
  TuneFlags tune;
  std::string kernel_file;
  CLI::App* tune_verb =
      app.add_subcommand("tune", "tune a kernel described by a .toml, or by a Kernel Tuner / BAT T1 .json");
  tune_verb->add_option("file", kernel_file, "kernel.toml or space.json")->required();
  AddTune(tune_verb, tune);
  SourceFlags source;
  CLI::App* source_verb = app.add_subcommand("hardware-optimize", "tune a kernel in a .cu file as it is");
  source_verb->add_option("--source", source.source, "the .cu file")->required();
  source_verb->add_option("--kernel", source.kernel, "which kernel of the file");
  source_verb->add_flag("--auto-tune", source.auto_tune, "tune what was found; without it, only say what was found");
  AddTune(source_verb, source.tune);
  CLI::App* devices = app.add_subcommand("devices", "GPUs of this machine and the table of known ones");
  bool probe = false;
  devices->add_flag("--probe", probe, "measure the GPU of this machine and keep its profile");
  BenchmarkFlags benchmark;
  CLI::App* benchmark_verb =
      app.add_subcommand("benchmark", "an operator at usual sizes against plain kernel and vendor library");
  benchmark_verb->add_option("--operator", benchmark.operator_name, "operator")->required();
  benchmark_verb->add_option("--input-shape", benchmark.shapes, "one size instead of the usual ones");
  benchmark_verb->add_option("--dtype", benchmark.dtype, "float32, float16 or bfloat16");
  benchmark_verb->add_option("--attr", benchmark.attributes, "operator attribute, key=value");
  benchmark_verb->add_option("--target-gpu", benchmark.target, "a GPU of `atunner devices`, or auto");
  benchmark_verb->add_flag("--virtual", benchmark.force_virtual, "predict, even if the GPU is in this machine");
  benchmark_verb->add_flag("--performance-mode", benchmark.performance_mode, "tune each size before comparing");
  SearchBenchFlags search_bench;
  CLI::App* search_bench_verb = app.add_subcommand("search-bench", "score search strategies on recorded tuning spaces");
  AddSearchBench(search_bench_verb, search_bench);
  std::string folder;
  std::string verify_target;
  bool verify_virtual = false;
  CLI::App* show = app.add_subcommand("show", "what an artifact is");
  show->add_option("folder", folder, "artifact folder")->required();
  CLI::App* verify = app.add_subcommand("verify", "judge an artifact again, with inputs nobody saw before");
  verify->add_option("folder", folder, "artifact folder")->required();
  verify->add_option("--target-gpu", verify_target, "GPU to verify on; default: the artifact's");
  verify->add_flag("--virtual", verify_virtual, "on the virtual GPU, even if the GPU is in this machine");
  CLI::App* doctor = app.add_subcommand("doctor", "what was found on this machine, what is missing, how to get it");
  CLI::App* operators = app.add_subcommand("operators", "operators and their attributes");
  CLI::App* history = app.add_subcommand("history", "earlier runs");
  CLI::App* report = app.add_subcommand("report", "what a run found");
  report->add_option("run", run, "run, prefix of one, or last");
  std::string report_format = "text";
  std::string report_out;
  report->add_option("--format", report_format, "text, md, html or json");
  report->add_option("--out", report_out, "file to write instead of printing");
  CLI::App* exporting = app.add_subcommand("export", "a run's trials");
  exporting->add_option("run", run, "run, prefix of one, or last");
  exporting->add_option("--format", format, "csv or json");
  CLI::App* self_test = app.add_subcommand("test", "compile, run and verify one kernel per operator on this machine");
  self_test->add_option("--target-gpu", target, "GPU to test for");
  for (CLI::App* verb : {optimize_verb, tune_verb, source_verb, benchmark_verb, search_bench_verb, show, verify,
                         devices, doctor, operators, history, report, exporting, self_test})
    AddCommon(verb, common);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "atunner: %s\n  hint: `atunner --help` or `atunner VERB --help`\n", error.what());
    return 2;
  }
  if (*optimize_verb) return Finish(Optimize(optimize, common, CommandLine(argc, argv)), common);
  if (*tune_verb) return Finish(TuneFile(kernel_file, tune, common, CommandLine(argc, argv)), common);
  if (*source_verb) return Finish(HardwareOptimize(source, common, CommandLine(argc, argv)), common);
  if (*benchmark_verb) return Finish(Benchmark(benchmark, common), common);
  if (*search_bench_verb) return Finish(SearchBench(search_bench, common), common);
  if (*show) return Finish(ShowArtifact(folder, common), common);
  if (*verify) return Finish(VerifyArtifact(folder, verify_target, verify_virtual, common), common);
  if (*devices) return Finish(Devices(probe, common), common);
  if (*doctor) return Finish(Doctor(common), common);
  if (*operators) return Finish(Operators(common), common);
  if (*history) return Finish(History(common), common);
  if (*report) return Finish(ShowReport(run, report_format, report_out, common), common);
  if (*exporting) return Finish(Export(run, format, common), common);
  return Finish(SelfTest(common, target), common);
}

}  // namespace
}  // namespace atunner::cli

int main(int argc, char** argv) { return atunner::cli::Main(argc, argv); }
