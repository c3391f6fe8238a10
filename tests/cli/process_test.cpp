// The command line end to end, without a GPU: predicted runs, resuming, killing.
#include "tests/cli/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "atunner/base/clock.h"
#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/model/json/json.h"
#include "atunner/store/store.h"

namespace atunner {
namespace {

using testing::HasSubstr;

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    if (RunShell(home(), "$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") ==
        std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
  }
  std::string home() const { return dir_.path().string(); }
  Outcome Run(const std::string& shell) { return RunShell(home(), shell); }
  TemporaryDirectory dir_;
};

constexpr const char* kOptimize =
    "$A optimize --operator softmax --input-shape 64,512 --target-gpu A100 --virtual --seed 3";

TEST_F(CommandLine, OptimizePredictsAndWritesAnArtifact) {
  const Outcome outcome = Run(std::string(kOptimize) + " --budget 12 --json --out best");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = ParseJson(outcome.out).value();
  EXPECT_EQ(json["evidence"], "predicted");
  EXPECT_EQ(json["trials"], 12);
  EXPECT_FALSE(json["best"]["estimate"].is_null());
  EXPECT_TRUE(json["best"]["measurement"].is_null())
      << "what is predicted is never called measured";
  for (const char* file : {"kernel.cu", "kernel.ptx", "kernel.cubin", "manifest.json", "report.md"})
    EXPECT_TRUE(std::filesystem::exists(home() + "/best/" + file)) << file;
  EXPECT_THAT(ReadFile(home() + "/best/report.md").value(), HasSubstr("**predicted**"));
  EXPECT_THAT(Run("$A history").out, HasSubstr("finished"));
  EXPECT_THAT(Run("$A export last").out, HasSubstr("predicted_ns"));
  const std::string csv = Run("$A export last --format csv").out;
  EXPECT_EQ(std::ranges::count(csv, '\n'), 13);
}

TEST_F(CommandLine, TheSameCommandGoesOnWhereItEnded) {
  const Json first = ParseJson(Run(std::string(kOptimize) + " --budget 6 --json").out).value();
  const Json second = ParseJson(Run(std::string(kOptimize) + " --budget 10 --json").out).value();
  EXPECT_EQ(first["run"], second["run"]);
  EXPECT_EQ(second["trials"], 10);
  const Json other =
      ParseJson(
          Run("$A optimize --operator softmax --input-shape 64,512 --target-gpu A100 --virtual "
              "--seed 4 --budget 3 --json")
              .out)
          .value();
  EXPECT_NE(other["run"], first["run"]);
}

TEST_F(CommandLine, TheSameSeedMakesTheSameChoice) {
  const Json first = ParseJson(Run(std::string(kOptimize) + " --budget 10 --json --store a.db").out)
                         .value();
  const Json second =
      ParseJson(Run(std::string(kOptimize) + " --budget 10 --json --store b.db").out).value();
  EXPECT_EQ(first["best_configuration"], second["best_configuration"]);
}

TEST_F(CommandLine, KilledRunsLoseAndRepeatNothing) {
  Random random(23);
  std::set<std::string> known;
  // The time to start and to judge a little depends on the load of the machine.
  const double start = SystemClock().Now();
  Run("$A optimize --operator softmax --input-shape 64,512 --target-gpu A100 --virtual --budget 3 "
      "--quiet --store "
      "other.db");
  const double some_trials = SystemClock().Now() - start;
  for (int kill = 0; kill < 50; ++kill) {
    const double seconds = some_trials * (0.25 + random.Uniform());
    Run("timeout -s KILL " + std::to_string(seconds) + " " + std::string(kOptimize) +
        " --budget 100000 --quiet");
    auto store = Store::Open(home() + "/data/atunner/atunner.db");
    if (!store) continue;  // killed before the store was made
    const auto run = (*store)->FindRun("last");
    if (!run) continue;
    std::set<std::string> now;
    const std::vector<Trial> trials = (*store)->Trials(run->id).value();
    for (const Trial& trial : trials) {
      EXPECT_TRUE(now.insert(ToJson(trial.configuration()).dump()).second) << "repeated";
    }
    EXPECT_TRUE(std::ranges::includes(now, known)) << "a finished trial was lost";
    known = now;
  }
  EXPECT_GT(known.size(), 10u);
}

TEST_F(CommandLine, CtrlCEndsWithWhatWasFound) {
  // Interrupted once a trial is in the store. Jobs of a shell that does not control them would
  // ignore the signal.
  const Outcome outcome = Run(
      "set -m; " + std::string(kOptimize) +
      " --budget 100000 --json --out best & job=$!; for wait in $(seq 600); do "
      "$A export last --format csv 2> none | grep -q correct && break; sleep 0.1; done > none; "
      "kill -INT $job; wait $job");
  const auto json = ParseJson(outcome.out);
  ASSERT_TRUE(json.has_value()) << outcome.err;
  EXPECT_EQ((*json)["stop_reason"], "stopped by the user");
  EXPECT_TRUE(std::filesystem::exists(home() + "/best/manifest.json"));
}

TEST_F(CommandLine, RunsThatCannotBeCarriedOutFailed) {
  const Outcome outcome = Run(
      "echo '__global__ void k(float* x) { x[0] = lost; } int main() { float* x; cudaMalloc(&x, "
      "4); k<<<1, 32>>>(x); "
      "}' > k.cu; $A hardware-optimize --source k.cu --auto-tune --target-gpu A100 --virtual");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
  EXPECT_THAT(Run("$A history").out, testing::HasSubstr(" failed "));
  EXPECT_THAT(Run("$A report last --json").out, testing::HasSubstr("\\\"lost\\\" is undefined"));
  EXPECT_THAT(Run("$A report last --format md").err, testing::HasSubstr("failed: "));
  EXPECT_TRUE(ParseJson(Run("$A export last --json").out)->contains("trials"));
}

// Runs the report's script in a real browser, if there is one.
TEST_F(CommandLine, TheReportDrawsItsHeatmapInABrowser) {
  const Outcome browser = Run(
      "command -v chromium || command -v chromium-browser || command -v google-chrome");
  if (browser.exit_code != 0) GTEST_SKIP() << "no Chromium on this machine";
  ASSERT_EQ(Run(std::string(kOptimize) + " --budget 12 --quiet --out best").exit_code, 0);
  const std::string path = browser.out.substr(0, browser.out.find('\n'));
  const Outcome page = Run("HOME=. timeout 60 " + path +
                           " --headless --no-sandbox --disable-gpu --virtual-time-budget=4000 "
                           "--dump-dom best/report.html");
  if (page.out.empty())
    GTEST_SKIP() << "the browser does not start here: " << page.err.substr(0, 200);
  const size_t drawn = page.out.find("data-drawn=\"");
  ASSERT_NE(drawn, std::string::npos) << page.out.substr(0, 2000);
  EXPECT_GT(std::stoi(page.out.substr(drawn + 12)), 0);
  EXPECT_THAT(page.out, testing::HasSubstr("<option value=\"1\">"));
}

TEST_F(CommandLine, ArtifactsAreShownAndVerifiedAgain) {
  ASSERT_EQ(Run(std::string(kOptimize) + " --budget 3 --quiet --out best").exit_code, 0);
  const Outcome shown = Run("$A show best");
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, testing::HasSubstr("serves any     rows"));
  const Outcome verified = Run("$A verify best --virtual --json");
  ASSERT_EQ(verified.exit_code, 0) << verified.err << verified.out;
  EXPECT_EQ((*ParseJson(verified.out))["verdict"]["kind"], "correct");
  // A changed byte in the binary is noticed before anything runs.
  Run("printf x >> best/kernel.cubin");
  EXPECT_EQ(Run("$A verify best --virtual").exit_code, 2);
}

TEST_F(CommandLine, BareSourcesTuneAndTheirReportIsMadeAnew) {
  const std::string source = std::string(ATUNNER_SOURCE_DIR) + "/examples/kernels/transpose.cu";
  const Outcome found = Run("$A hardware-optimize --source " + source +
                            " --target-gpu A100 --virtual");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, testing::HasSubstr("tunable    TILE"));
  const Outcome tuned = Run(
      "$A hardware-optimize --source " + source +
      " --target-gpu A100 --virtual --auto-tune --budget 6 --json --out best");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(ParseJson(tuned.out)->contains("best"));
  const Outcome page = Run("$A report last --format html");
  EXPECT_THAT(page.out, testing::HasSubstr("<h1>transpose on"));
  EXPECT_THAT(Run("$A report last --format md").out, testing::HasSubstr("as given"));
}

TEST_F(CommandLine, AKernelAloneIsTunedAtItsSize) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "alone.cu", R"cu(
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
)cu"));
  const std::string command = "$A hardware-optimize --source alone.cu --target-gpu A100 --virtual ";
  const Outcome asked = Run(command);
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, testing::HasSubstr("or give --dim n=1048576"));
  const Outcome tuned = Run(command + "--dim n=4096 --auto-tune --budget 2 --json --out best");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(ParseJson(tuned.out)->contains("best")) << tuned.out;
}

TEST_F(CommandLine, ProgramsAsTheyAreFoundTune) {
  const std::string folder = std::string(ATUNNER_SOURCE_DIR) + "/examples/kernels/";
  const auto tune = [&](const std::string& file) {
    return Run("$A hardware-optimize --source " + folder + file +
               " --target-gpu A100 --virtual --auto-tune --budget 2 --json --out " + file +
               ".best");
  };
  for (const char* file : {"heat.cu", "rms_norm.cu"}) {
    const Outcome tuned = tune(file);
    ASSERT_EQ(tuned.exit_code, 0) << file << tuned.err;
    EXPECT_TRUE(ParseJson(tuned.out)->contains("best")) << tuned.out;
    const Outcome verified = Run("$A verify " + std::string(file) + ".best --virtual --json");
    EXPECT_EQ(verified.exit_code, 0) << file << verified.err << verified.out;
  }
}

constexpr const char* kScaleSource = R"cu(
extern "C" __global__ void scale(const float* x, float* y, int n) {
  constexpr int order[] = {ORDER};
  static_assert(order[0] == ORDER_0 && order[1] == ORDER_1 && order[2] == ORDER_2, "one order");
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#if STAGED
  __shared__ float tile[DEPTH * BLOCK];
  tile[threadIdx.x + (ORDER_0 % DEPTH) * BLOCK] = x[i];
  y[i] = 2 * tile[threadIdx.x + (ORDER_0 % DEPTH) * BLOCK];
#else
  static_assert(DEPTH == 0, "means nothing");
  y[i] = 2 * x[i];
#endif
}
)cu";
constexpr const char* kScaleTask = R"toml(
source = "scale.cu"
constraints = ["position(ORDER, 1) > 0"]
[sizes]
n = 4096
[parameters]
BLOCK = { from = 64, to = 256, count = 3, spacing = "log" }
STAGED = [false, true]
ORDER = { permutation = [0, 1, 2] }
DEPTH = { values = [1, 2, 4], if = "STAGED", otherwise = 0 }
[[argument]]
name = "x"
type = "float"
shape = "n"
[[argument]]
name = "y"
type = "float"
shape = "n"
role = "out"
[[launch]]
kernel = "scale"
grid = "ceil_div(n, BLOCK)"
block = "BLOCK"
arguments = ["x", "y", "n: int32"]
)toml";

// A run with every kind of parameter, two virtual GPUs and two objectives, and a second run that
// uses its results as prior.
TEST_F(CommandLine, PermutationsConditionsDevicesAndObjectives) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "scale.cu", kScaleSource));
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "scale.toml", kScaleTask));
  const std::string tune =
      "$A tune scale.toml --target-gpu A100 --virtual --devices 0,1 --objective time,memory "
      "--json ";
  const Outcome outcome = Run(tune + "--budget 60");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = *ParseJson(outcome.out);
  EXPECT_EQ(json["space_size"], 3 * 4 * (1 + 3));
  EXPECT_EQ(json["trials"], 3 * 4 * (1 + 3));
  ASSERT_FALSE(json["front"].empty());
  double last = 0;
  for (const Json& point : json["front"]) {
    EXPECT_GE(point["time_ns"].get<double>(), last);
    last = point["time_ns"];
    EXPECT_EQ(point["memory_bytes"], point["configuration"]["DEPTH"].get<int>() *
                                         point["configuration"]["BLOCK"].get<int>() * 4);
  }
  EXPECT_THAT(Run("$A report last --format md").out, HasSubstr("## Pareto front"));
  const Outcome taught = Run(
      "$A tune scale.toml --target-gpu A100 --virtual --seed 2 --budget 8 --out taught");
  EXPECT_THAT(taught.err, HasSubstr("learning from "));
  const Outcome alone = Run(
      "$A tune scale.toml --target-gpu A100 --virtual --seed 3 --budget 8 --no-transfer --out "
      "alone");
  EXPECT_THAT(alone.err, testing::Not(HasSubstr("learning from ")));
}

TEST(SearchBench, ScoresStrategiesOnAFolder) {
  const TemporaryDirectory folder;
  std::string values;
  std::string entries;
  for (int x = 0; x < 200; ++x) {
    const std::string n = std::to_string(x);
    const std::string separator = x ? ", " : "";
    values += separator + n;
    entries += separator + "\"" + n + R"(": {"x": )" + n + R"(, "time": )" +
               std::to_string(1 + std::abs(x - 140)) + "}";
  }
  const std::string cache = R"({"tune_params": {"x": [)" + values + R"(]}, "cache": {)" + entries +
                            "}}";
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "slope.json", cache).has_value());
  const Outcome outcome = RunShell(folder.path().string(),
                                   "$A search-bench --spaces . --repeats 5 --strategy all --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = ParseJson(outcome.out).value();
  std::map<std::string, double> scores;
  for (const Json& row : json["summary"]) scores[row["strategy"]] = row["score"];
  EXPECT_GT(scores.size(), 10u);
  EXPECT_TRUE(scores.contains("random"));
  EXPECT_GT(scores["auto"], 0.3);
  const Outcome table = RunShell(folder.path().string(), "$A search-bench --spaces . --repeats 2");
  EXPECT_THAT(table.out, HasSubstr("mean of 1 spaces"));
}

TEST(Predict, TakesAListOfConfigurations) {
  const TemporaryDirectory folder;
  const std::string shell = "$A predict --operator softmax --input-shape 64,512 --target-gpu H200 ";
  const Outcome one = RunShell(folder.path().string(), shell + "--json --counts");
  if (one.out.find("NVRTC") != std::string::npos) GTEST_SKIP() << "NVRTC is not installed";
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const Json first = ParseJson(one.out).value();
  EXPECT_EQ(first["evidence"], "predicted");
  EXPECT_EQ(first["calibration"], "not calibrated");
  const Json& row = first["predictions"][0];
  double sum = 0;
  for (const Json& part : row["estimate"]["parts"])
    sum += part["overlapped"].get<bool>() ? 0 : part["ns"].get<double>();
  EXPECT_NEAR(sum, row["estimate"]["time_ns"].get<double>(), 1e-3 * sum);
  EXPECT_GT(row["launches"][0]["issued"].get<double>(), 0);
  const Json list = Json::array({row["configuration"], row["configuration"]});
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "list.json", DumpJson(list)).has_value());
  const Outcome two = RunShell(folder.path().string(), shell + "--configs list.json --json");
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const Json both = ParseJson(two.out).value();
  ASSERT_EQ(both["predictions"].size(), 2u);
  EXPECT_EQ(both["predictions"][0]["estimate"]["time_ns"],
            both["predictions"][1]["estimate"]["time_ns"]);
  const Outcome late = RunShell(
      folder.path().string(),
      "$A predict --operator softmax --input-shape 64,648 --target-gpu H200 --json "
      "--compile-timeout 0.001");
  EXPECT_THAT(late.out, HasSubstr("did not compile within 0.001 s"));
}

TEST(Predict, TakesABareSourceWithAllThatItLaunches) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "two.cu", R"(
__global__ void twice(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
__global__ void copy(const float* x, float* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = x[i]; }
int main() {
  const int n = 4096;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  twice<<<n / 256, 256>>>(x, n);
  copy<<<n / 64, 64>>>(x, y, n);
})")
                  .has_value());
  const Outcome both = RunShell(folder.path().string(),
                                "$A predict two.cu --target-gpu H200 --json");
  if (both.out.find("NVRTC") != std::string::npos) GTEST_SKIP() << "NVRTC is not installed";
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const Json answers = ParseJson(both.out).value();
  ASSERT_EQ(answers.size(), 2u);
  for (const Json& answer : answers)
    EXPECT_GT(answer["predictions"][0]["estimate"]["time_ns"].get<double>(), 0);
  const std::string one = "$A predict two.cu --kernel twice --target-gpu H200 --json";
  const Json twice = ParseJson(RunShell(folder.path().string(), one).out).value();
  EXPECT_EQ(twice["predictions"][0]["estimate"], answers[0]["predictions"][0]["estimate"]);
  // The space is the one that `hardware-optimize` searches, so that any of its configurations can
  // be requested.
  const Json list = Json::array({twice["predictions"][0]["configuration"]});
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "list.json", DumpJson(list)).has_value());
  EXPECT_EQ(RunShell(folder.path().string(), one + " --configs list.json").exit_code, 0);
  const Outcome whose = RunShell(folder.path().string(),
                                 "$A predict two.cu --target-gpu H200 --configs list.json");
  EXPECT_EQ(whose.exit_code, 2);
  EXPECT_THAT(whose.err, HasSubstr("--kernel"));
}

TEST(Predict, TakesAGraph) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(
      WriteFileAtomic(folder.path() / "g.atg",
                      "graph g\ndim B = 1..64\ninput x: float32[B, 512]\ny = exp(x)\noutput y\n")
          .has_value());
  const Outcome done = RunShell(folder.path().string(),
                                "$A predict --graph g.atg --dim B=32 --target-gpu H200");
  if (done.err.find("NVRTC") != std::string::npos) GTEST_SKIP() << "NVRTC is not installed";
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr(" us  "));
}

}  // namespace
}  // namespace atunner
