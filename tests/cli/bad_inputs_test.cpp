// Wrong input gets one message: what, where, what to do; a non-zero exit; nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/base/files.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

struct BadInput {
  const char* name;
  const char* shell;
  int exit_code;
  const char* says;  ///< in the message
};

#define SOFTMAX "$A optimize --operator softmax --target-gpu A100 --virtual --budget 2 "
constexpr BadInput kTable[] = {
    {"NoVerb", "$A", 2, "subcommand"},
    {"UnknownVerb", "$A optimise --operator softmax", 2, "did you mean 'optimize'"},
    {"UnknownVerbFar", "$A zzzzzzzz", 2, "--help"},
    {"UnknownFlag", SOFTMAX "--input-shape 8,8 --bogus", 2, "--bogus"},
    {"NoOperator", "$A optimize --input-shape 8,8", 2, "--operator"},
    {"NoShape", "$A optimize --operator softmax", 2, "--input-shape"},
    {"UnknownOperator", "$A optimize --operator sofmax --input-shape 8,8 --target-gpu A100", 2,
     "did you mean 'softmax'"},
    {"UnknownOperatorFar", "$A optimize --operator zzzzzzzz --input-shape 8,8 --target-gpu A100", 2,
     "atunner operators"},
    {"ShapeZero", SOFTMAX "--input-shape 8,0", 2, "at least 1"},
    {"ShapeNegative", SOFTMAX "--input-shape=-8,8", 2, "at least 1"},
    {"ShapeWord", SOFTMAX "--input-shape 8,x", 2, "'x' is no dimension"},
    {"ShapeEmpty", SOFTMAX "--input-shape ''", 2, "no dimension"},
    {"ShapeTrailingComma", SOFTMAX "--input-shape 8,", 2, "no dimension"},
    {"ShapeFraction", SOFTMAX "--input-shape 8.5,8", 2, "no dimension"},
    {"ShapeHuge", SOFTMAX "--input-shape 1048576,1048576", 2, "2^40"},
    {"ShapeOverflow", SOFTMAX "--input-shape 99999999999999999999,8", 2, "no dimension"},
    {"ShapeOverflowProduct", SOFTMAX "--input-shape 9999999999,9999999999,8", 2,
     "too many elements"},
    {"TwoShapes", SOFTMAX "--input-shape 8,8 --input-shape 8,8", 2, "one shape"},
    {"MatmulTwoNumbers",
     "$A optimize --operator matmul --input-shape 8,8 --target-gpu A100 --virtual", 2, "M,N,K"},
    {"MatmulFourNumbers",
     "$A optimize --operator matmul --input-shape 8,8,8,8 --target-gpu A100 --virtual", 2, "M,N,K"},
    {"ConvOneShape",
     "$A optimize --operator conv2d --input-shape 1,8,8,4 --target-gpu A100 --virtual", 2,
     "two shapes"},
    {"ConvFilterTooLarge",
     "$A optimize --operator conv2d --input-shape 1,2,2,1 --input-shape 1,5,5 --target-gpu A100 "
     "--virtual",
     2, "larger"},
    {"ConvStrideZero",
     "$A optimize --operator conv2d --input-shape 1,8,8,1 --input-shape 1,3,3 --attr stride=0 "
     "--target-gpu A100 "
     "--virtual",
     2, "stride"},
    {"AttentionDimTooLarge",
     "$A optimize --operator attention --input-shape 1,1,8,512 --target-gpu A100 --virtual", 2,
     "256"},
    {"AttentionThreeNumbers",
     "$A optimize --operator attention --input-shape 1,8,8 --target-gpu A100 --virtual", 2,
     "four numbers"},
    {"DtypeUnknown", SOFTMAX "--input-shape 8,8 --dtype float12", 2, "float12"},
    {"DtypeNotServed", SOFTMAX "--input-shape 8,8 --dtype int32", 2, "int32"},
    {"AttributeWithoutValue", SOFTMAX "--input-shape 8,8 --attr eps", 2, "key=value"},
    {"AttributeUnknown",
     "$A optimize --operator layernorm --input-shape 8,8 --attr epz=1 --target-gpu A100 --virtual",
     2, "did you mean 'eps'"},
    {"AttributeOfNone", SOFTMAX "--input-shape 8,8 --attr foo=1", 2, "unknown attribute 'foo'"},
    {"AttributesAreListed",
     "$A predict --operator roll --input-shape 8 --attr foo=1 --target-gpu A100", 2,
     "there is axis, shift"},
    {"NodesOfTheOperatorsName",
     "$A predict --operator pad --input-shape 8 --attr low=-1 --target-gpu A100", 2,
     "atunner: pad: low is -1"},
    {"NoSuchOperatorToList", "$A operators conv4d", 2, "no operator is called like that"},
    {"OutputFull", "$A operators > /dev/full", 3, "standard output cannot be written"},
    {"OutputFullOfJson", "$A operators softmax --json > /dev/full", 3,
     "standard output cannot be written"},
    {"PredictNoneThatCompiles",
     "echo '__global__ void k(float* x) { x[0] = lost; } int main() { float* x; cudaMalloc(&x, 4); "
     "k<<<1, 32>>>(x); }' "
     "> k.cu; $A predict k.cu --target-gpu H200 1>&2",
     1, "identifier \"lost\" is undefined"},
    {"EpsNegative",
     "$A optimize --operator layernorm --input-shape 8,8 --attr eps=-1 --target-gpu A100 --virtual",
     2, "positive"},
    {"EpsWord",
     "$A optimize --operator layernorm --input-shape 8,8 --attr eps=small --target-gpu A100 "
     "--virtual",
     2, "--attr eps: 'small' is no number"},
    {"AttributeOfTwoValues",
     "$A optimize --operator sum --input-shape 8,8 --attr axis=0,1 --target-gpu A100 --virtual", 2,
     "--attr axis=0,1"},
    {"FlagInWords",
     "$A optimize --operator attention --input-shape 1,1,8,64 --attr causal=no --target-gpu A100",
     2, "--attr causal: 'no' is neither true nor false"},
    {"EpsBroken",
     "$A optimize --operator layernorm --input-shape 8,8 --attr 'eps=(1' --target-gpu A100 "
     "--virtual",
     2, "')'"},
    {"GpuUnknown", "$A optimize --operator softmax --input-shape 8,8 --target-gpu GTX480", 2,
     "GTX480"},
    {"GpuEmpty", "$A optimize --operator softmax --input-shape 8,8 --target-gpu ''", 2,
     "unknown GPU"},
    {"AutoAndVirtual",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu auto --virtual", 2,
     "name a GPU"},
    {"StrategyUnknown", SOFTMAX "--input-shape 8,8 --strategy magic", 2, "bayes"},
    {"ObjectiveUnknown", SOFTMAX "--input-shape 8,8 --objective speed", 2,
     "use time, memory and energy"},
    {"DevicesWord", SOFTMAX "--input-shape 8,8 --devices both", 2, "write all, or 0,1"},
    {"DevicesTwice", SOFTMAX "--input-shape 8,8 --devices 0,0", 2, "named twice"},
    {"PredictNoTarget", "$A predict --operator softmax --input-shape 8,8", 2, "--target-gpu"},
    {"PredictNothing", "$A predict --target-gpu H200", 2, "operator"},
    {"PredictNoList",
     "$A predict --operator softmax --input-shape 8,8 --target-gpu H200 --configs nowhere", 2,
     "nowhere"},
    {"PredictNames",
     "echo '[{\"vector\": 4}]' > c.json; $A predict --operator softmax --input-shape 8,8 "
     "--target-gpu H200 "
     "--configs c.json",
     2, "c.json: configuration 1 is no list of values"},
    {"TimeoutNegative", "$A sanitize --operator softmax --input-shape 8,8 --timeout -1", 2,
     "--timeout: '-1' is not above 0"},
    {"PredictNotAList",
     "echo '{}' > c.json; $A predict --operator softmax --input-shape 8,8 --target-gpu H200 "
     "--configs c.json",
     2, "neither a list"},
    {"PredictShortConfiguration",
     "echo '[[1]]' > c.json; $A predict --operator softmax --input-shape 8,8 --target-gpu H200 "
     "--configs c.json",
     2, "1 values"},
    {"CalibrateWithoutProbe", "$A devices --calibrate", 2, "--probe"},
    {"BrokenCalibration",
     "mkdir -p \"$XDG_DATA_HOME/atunner/profiles\"; echo '{\"calibration\": {}}' > "
     "\"$XDG_DATA_HOME/atunner/profiles/H200.json\"; $A predict --operator softmax --input-shape "
     "8,8 --target-gpu H200",
     2, "--calibrate"},
    {"SearchBenchNoFolder", "$A search-bench --spaces nowhere", 2, "nowhere"},
    {"SearchBenchEmptyFolder", "mkdir none; $A search-bench --spaces none", 2,
     "no recorded spaces"},
    {"SearchBenchNoCache", "mkdir odd; echo '[1]' > odd/a.json; $A search-bench --spaces odd", 2,
     "tune_params"},
    {"SearchBenchNoGzip",
     "mkdir gz; printf '\\037\\213x' > gz/a.json.gz; $A search-bench --spaces gz", 2, "damaged"},
    {"SearchBenchNothingAlike",
     "mkdir one; echo '{\"tune_params\": {\"x\": [1, 2]}, \"cache\": {\"1\": {\"x\": 1, \"time\": "
     "1}, "
     "\"2\": {\"x\": 2, \"time\": 2}}}' > one/a.json; $A search-bench --spaces one --transfer",
     2, "no two of the spaces"},
    {"SearchBenchStrategy",
     "mkdir ok; echo '{\"tune_params\": {\"x\": [1, 2]}, \"cache\": {\"1\": {\"x\": 1, \"time\": "
     "1}, "
     "\"2\": {\"x\": 2, \"time\": 2}}}' > ok/a.json; $A search-bench --spaces ok --strategy magic",
     2, "choose one of"},
    {"BudgetWord",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget lots",
     2, "budget"},
    {"BudgetZero",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget 0", 2,
     "budget"},
    {"BudgetNegative",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget=-5s", 2,
     "budget"},
    {"BudgetUnit",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget 5weeks",
     2, "weeks"},
    {"BudgetFraction",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget 1.5", 2,
     "whole number"},
    {"BudgetNan",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget nan", 2,
     "budget"},
    {"SeedWord", SOFTMAX "--input-shape 8,8 --seed x", 2, "seed"},
    {"SeedNegative", SOFTMAX "--input-shape 8,8 --seed=-1", 2, "seed"},
    {"ThreadsWord", SOFTMAX "--input-shape 8,8 --compile-threads many", 2, "compile-threads"},
    {"StoreIsFolder", SOFTMAX "--input-shape 8,8 --store /tmp", 2, "--store"},
    {"StoreIsText",
     "head -c 5000 /dev/zero | tr '\\0' x > text.db; " SOFTMAX "--input-shape 8,8 --store text.db",
     2, "no store"},
    {"StoreUnwritable", SOFTMAX "--input-shape 8,8 --store /proc/x/s.db", 2,
     "choose a place you may write to with --store"},
    {"StoreNewer",
     SOFTMAX "--input-shape 8,8 --store new.db --quiet >/dev/null; python3 -c \"import sqlite3; "
             "c=sqlite3.connect('new.db'); "
             "c.execute('PRAGMA user_version=99'); c.commit()\"; $A history --store new.db",
     2, "newer"},
    {"OutIsFile", "touch file; " SOFTMAX "--input-shape 8,8 --out file", 2, "file"},
    {"OutUnwritable", SOFTMAX "--input-shape 8,8 --out /proc/best", 2, "/proc/best"},
    {"OutHoldsOtherFiles",
     "mkdir mine; touch mine/notes.txt; " SOFTMAX "--input-shape 8,8 --out mine", 2, "notes.txt"},
    {"DiskFull", "ulimit -f 8; " SOFTMAX "--input-shape 8,8 --store small.db", 2, "small.db"},
    {"ReportUnknownRun", "$A report nosuchrun", 2, "history"},
    {"ReportNoRunYet", "$A report", 2, "no run yet"},
    {"ReportNoSuchStore", "$A report --store empty.db", 2, "there is no store 'empty.db'"},
    {"HistoryNoSuchStore", "$A history --store typo.db; code=$?; test ! -e typo.db && exit $code",
     2, "there is no store 'typo.db'"},
    {"ExportUnknownFormat", "$A export last --format xml", 2, "csv or json"},
    {"ExportUnknownRun", "$A export nosuchrun", 2, "nosuchrun"},
    {"HistoryStoreIsFolder", "$A history --store /tmp", 2, "--store"},
    {"ReportTwoNames", "$A report a b", 2, "--help"},
    {"TestUnknownGpu", "$A test --target-gpu Nope", 2, "Nope"},
    {"DevicesExtraWord", "$A devices now", 2, "--help"},
    {"JsonErrorsAreJson", "$A optimize --operator nope --input-shape 8,8 --json; exit $?", 2, ""},
    {"BudgetMixedBroken",
     "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 --virtual --budget 5,", 2,
     "budget"},
    {"TuneNoFile", "$A tune", 2, "file"},
    {"TuneMissingFile", "$A tune nowhere.toml", 2, "nowhere.toml"},
    {"TuneUnknownKind", "echo x > k.yaml; $A tune k.yaml", 2, "neither a kernel .toml"},
    {"TuneBareSource", "echo x > k.cu; $A tune k.cu", 2, "hardware-optimize --source k.cu"},
    {"TuneFolder", "mkdir d.toml; $A tune d.toml", 2, "d.toml"},
    {"TuneFifo", "mkfifo k.toml; timeout 30 $A tune k.toml", 2, "a regular file is needed"},
    {"SanitizeFifo", "mkfifo k.cu; timeout 30 $A sanitize k.cu", 2, "a regular file is needed"},
    {"GraphIsADevice", "timeout 30 $A optimize --graph /dev/zero --target-gpu A100 --virtual", 2,
     "a regular file is needed"},
    {"DataIsADevice",
     "printf '// atunner: block = 32\n// atunner: grid = 1\n// atunner: arg x inout float32[32]\n"
     "// atunner: fill x = file /dev/zero\n__global__ void k(float* x) { x[threadIdx.x] += 1; }' "
     "> k.cu; timeout 30 $A hardware-optimize --source k.cu --auto-tune --target-gpu A100 "
     "--virtual",
     2, "a regular file is needed"},
    {"TomlMalformed", "echo 'name = ' > k.toml; $A tune k.toml", 2, "k.toml:1"},
    {"TomlUnknownKey", "printf 'source = \"k.cu\"\nsorce = 3\n' > k.toml; $A tune k.toml", 2,
     "did you mean 'source'"},
    {"TomlMissingSource",
     "printf 'source = \"k.cu\"\n[[launch]]\nkernel=\"k\"\ngrid=1\nblock=1\n' > k.toml; $A tune "
     "k.toml",
     2, "k.cu"},
    {"TomlConstraintExcludesEverything",
     "echo '__global__ void k(float* x) { x[0] = 1; }' > k.cu; printf 'source = "
     "\"k.cu\"\nconstraints = [\"b > "
     "64\"]\n[parameters]\nb = [32, "
     "64]\n[[argument]]\nname=\"x\"\ntype=\"float\"\nshape=1\nrole=\"out\"\n[[launch]]\nkernel="
     "\"k\"\ngrid=1\nblock="
     "\"b\"\n' > k.toml; $A tune k.toml --target-gpu A100 --virtual",
     2, "b > 64"},
    {"T1NotJson", "echo '{' > k.json; $A tune k.json", 2, "not valid JSON"},
    {"T1NoKernel",
     "echo '{\"ConfigurationSpace\": {\"TuningParameters\": []}}' > k.json; $A tune k.json", 2,
     "KernelSpecification"},
    {"SourceMissing", "$A hardware-optimize --source nowhere.cu --target-gpu A100 --virtual", 2,
     "nowhere.cu"},
    {"SourceWithoutKernel",
     "echo 'int main() {}' > k.cu; $A hardware-optimize --source k.cu --target-gpu A100 --virtual",
     2, "no __global__ kernel"},
    {"SourceWithoutLaunch",
     "echo '__global__ void k(float* x) { x[threadIdx.x] = 1; }' > k.cu; $A hardware-optimize "
     "--source k.cu "
     "--target-gpu "
     "A100 --virtual",
     2, "// atunner: block = 256"},
    {"SourceOfSeveralSizes",
     "echo '__global__ void k(float* x, int n) { x[threadIdx.x] = n; }' > k.cu; $A "
     "hardware-optimize --source k.cu --target-gpu A100 --virtual --dim n=32,64",
     2, "give one, as in n=1048576"},
    {"SourceUnknownKernel",
     "echo '__global__ void k(float* x) {}' > k.cu; $A hardware-optimize --source k.cu --kernel q "
     "--target-gpu A100 "
     "--virtual",
     2, "the file has k"},
    {"SourceDoesNotCompile",
     "printf '// atunner: block = 32\n// atunner: grid = 1\n// atunner: arg x out "
     "float32[32]\n__global__ void "
     "k(float* x) "
     "{ x[threadIdx.x] = nonsense; }' > k.cu; $A hardware-optimize --source k.cu --auto-tune "
     "--target-gpu A100 "
     "--virtual",
     2, "k.cu(4)"},
    {"SourceReadsBeyondItsBuffer",
     "printf '// atunner: block = 32\n// atunner: grid = 1\n// atunner: arg x out "
     "float32[16]\n__global__ void "
     "k(float* x) "
     "{\n x[threadIdx.x] = 1; }' > k.cu; $A hardware-optimize --source k.cu --auto-tune "
     "--target-gpu A100 --virtual",
     2, "k.cu:5"},
};

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, GetOneMessage) {
  TemporaryDirectory dir;
  const BadInput& bad = GetParam();
  const Outcome outcome = RunShell(dir.path().string(), bad.shell);
  if (outcome.err.find("atunner: NVRTC") != std::string::npos)
    GTEST_SKIP() << "NVRTC is not installed";
  EXPECT_EQ(outcome.exit_code, bad.exit_code) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.err, testing::HasSubstr(bad.says));
  EXPECT_EQ(outcome.signal, 0);
  // One message: it names the program once. (Hints may show annotations, which do too.)
  size_t count = outcome.err.starts_with("atunner: ") ? 1 : 0;
  for (size_t at = outcome.err.find("\natunner: "); at != std::string::npos;
       at = outcome.err.find("\natunner: ", at + 1))
    ++count;
  EXPECT_LE(count, 1u) << outcome.err;
}
INSTANTIATE_TEST_SUITE_P(Table, BadInputs, testing::ValuesIn(kTable),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(BadInput, WithoutNvrtcItSaysHowToGetIt) {
  TemporaryDirectory dir;
  // A root without CUDA: nothing is found in the usual places when they are hidden by an empty
  // mount namespace.
  const Outcome outcome = RunShell(
      dir.path().string(),
      "unshare -rm bash -c 'mount -t tmpfs none /usr/local && $A optimize --operator "
      "softmax --input-shape 8,8 --target-gpu A100 --virtual' || exit 77");
  if (outcome.exit_code == 77 && outcome.err.find("NVRTC") == std::string::npos)
    GTEST_SKIP() << "this machine allows no mount namespace";
  EXPECT_THAT(outcome.err, testing::HasSubstr("nvidia-cuda-toolkit"));
}

}  // namespace
}  // namespace atunner
