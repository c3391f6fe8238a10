// `atunner optimize` as a process writes an artifact; the runtime loads that very folder, launches
// it, and the numbers equal the float64 reference: at the size it was tuned for and at another that
// its manifest says it serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atunner.hpp>
#include <cmath>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/operators/operator.h"
#include "runtime/testing/driver_client.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

#ifdef ATUNNER_ON_GPU
constexpr bool kOnGpu = true;
constexpr const char* kTarget = "--target-gpu auto";
#else
constexpr bool kOnGpu = false;
constexpr const char* kTarget = "--target-gpu A100 --virtual";
#endif

struct Case {
  const char* name;
  const char* task;      ///< flags of optimize
  Dims other;            ///< dims of another size served
  const char* not_free;  ///< a dim that the binary has baked in; "" if none
  double tolerance;      ///< of |y - r| / max(|r|, rms(r))
};

const Case kCases[] = {
    {"Softmax", "--operator softmax --input-shape 48,512", {{"rows", 7}}, "cols", 1e-5},
    {"SoftmaxHalf",
     "--operator softmax --input-shape 48,512 --dtype float16",
     {{"rows", 101}},
     "cols",
     2e-3},
    {"LayernormBackward",
     "--operator layernorm_backward --input-shape 40,256",
     {{"rows", 90}},
     "cols",
     1e-4},
    {"Matmul",
     "--operator matmul --input-shape 96,80,64",
     {{"M", 33}, {"N", 44}, {"K", 128}},
     "",
     1e-5},
    {"MatmulHalf",
     "--operator matmul --input-shape 65,67,69 --dtype bfloat16",
     {{"M", 20}, {"N", 67}, {"K", 69}},
     "",
     2e-2},
    {"Convolution",
     "--operator conv2d --input-shape 1,8,8,8 --input-shape 8,3,3",
     {{"N", 3}},
     "H",
     1e-5},
    {"Attention",
     "--operator attention --input-shape 1,2,40,24",
     {{"heads", 3}, {"sequence", 37}},
     "dim",
     1e-5},
};

/// Elements as the device holds them, and what they are worth.
struct HostTensor {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

HostTensor RandomTensor(const ArgSpec& arg, const TensorShape& shape, Random& random) {
  HostTensor tensor{std::vector<std::byte>(static_cast<size_t>(shape.bytes)), {}};
  for (size_t i = 0; i < static_cast<size_t>(shape.elements); ++i) {
    StoreElement(arg.dtype, tensor.bytes.data(), i, 4.0 * random.Uniform() - 2.0);
    tensor.values.push_back(LoadElement(arg.dtype, tensor.bytes.data(), i));
  }
  return tensor;
}

/// Largest |y - r| / max(|r|, rms(r)); infinite when there is a NaN.
double WorstError(const ArgSpec& arg, const std::vector<std::byte>& bytes,
                  const std::vector<double>& reference) {
  double squares = 0;
  for (const double r : reference) squares += r * r;
  const double rms = std::sqrt(squares / static_cast<double>(reference.size()));
  double worst = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double error = std::fabs(LoadElement(arg.dtype, bytes.data(), i) - reference[i]);
    if (std::isnan(error)) return INFINITY;
    worst = std::max(worst, error / std::max(std::fabs(reference[i]), rms));
  }
  return worst;
}

std::vector<std::pair<std::string, std::string>> TextOf(const Attributes& attributes) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, value] : attributes) texts.emplace_back(name, ToString(value));
  return texts;
}

class EndToEnd : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = testing_driver::Client::Missing(ATUNNER_DRIVER);
        !missing.empty()) {
      std::printf("[atunner] every test skipped\n");
      GTEST_SKIP() << missing;
    }
    if (RunShell(home(), "$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") ==
        std::string::npos) {
      std::printf("[atunner] every test skipped\n");
      GTEST_SKIP() << "NVRTC is not installed";
    }
    driver_.emplace(ATUNNER_DRIVER);
    driver_->MakeCurrent();
    if (!kOnGpu) driver_->Play("A100");
  }
  std::string home() const { return dir_.path().string(); }
  Path artifact() const { return dir_.path() / "best"; }

  void Optimize(const std::string& task) {
    const Outcome outcome = RunShell(
        home(), "$A optimize " + task + " " + kTarget + " --seed 3 --budget 3 --quiet --out best");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }

  runtime::Kernel Choose(const Artifact& loaded, const Dims& dims) {
    runtime::Set set(ATUNNER_DRIVER);
    set.Add(artifact().string());
    runtime::Problem problem{loaded.name, std::string(Name(loaded.spec.compute_dtype)), {}, {}};
    problem.dims.assign(dims.begin(), dims.end());
    problem.attributes = TextOf(loaded.spec.attributes);
    return set.Choose(problem, 0);
  }

  /// Random inputs through the kernel on a stream; the worst error of its outputs.
  double LaunchAndCompare(const runtime::Kernel& kernel, const KernelSpec& spec, const Dims& dims) {
    Random random(11);
    std::vector<std::vector<double>> inputs, references;
    std::vector<const ArgSpec*> outputs;
    std::vector<uint64_t> addresses, output_addresses;
    for (const ArgSpec& arg : spec.args) {
      if (arg.role == Role::kScalar) continue;
      const TensorShape shape = ShapeOf(arg, spec, dims).value();
      if (arg.role == Role::kInput) {
        HostTensor tensor = RandomTensor(arg, shape, random);
        addresses.push_back(driver_->Upload(tensor.bytes));
        inputs.push_back(std::move(tensor.values));
      } else {
        outputs.push_back(&arg);
        references.emplace_back(static_cast<size_t>(shape.elements));
        // All bits set is NaN: what is not written shows.
        addresses.push_back(driver_->Upload(
            std::vector<std::byte>(static_cast<size_t>(shape.bytes), std::byte{0xff})));
        output_addresses.push_back(addresses.back());
      }
    }
    EXPECT_TRUE(FindOperator(spec.name)->Reference(spec, dims, inputs, references).has_value());
    void* const stream = driver_->NewStream();
    kernel.Launch(stream, addresses);
    driver_->Synchronize(stream);
    double worst = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t bytes = references[i].size() * SizeOf(outputs[i]->dtype);
      const auto result = driver_->Download<std::byte>(output_addresses[i], bytes);
      worst = std::max(worst, WorstError(*outputs[i], result, references[i]));
    }
    return worst;
  }

  TemporaryDirectory dir_;
  std::optional<testing_driver::Client> driver_;
};

class EveryFamily : public EndToEnd, public testing::WithParamInterface<Case> {};

TEST_P(EveryFamily, TunedKernelsLoadLaunchAndAreRight) {
  const Case& test = GetParam();
  Optimize(test.task);
  const Artifact loaded = LoadArtifact(artifact()).value();
  EXPECT_EQ(loaded.evidence, kOnGpu ? Evidence::kMeasured : Evidence::kPredicted);
  const Dims tuned = loaded.spec.dims;
  {
    const runtime::Kernel kernel = Choose(loaded, tuned);
    EXPECT_EQ(kernel.match(), ATUNNER_MATCH_EXACT) << kernel.match_text();
    EXPECT_LE(LaunchAndCompare(kernel, loaded.spec, tuned), test.tolerance);
  }
  Dims other = tuned;
  for (const auto& [name, extent] : test.other) other[name] = extent;
  const runtime::Kernel kernel = Choose(loaded, other);
  EXPECT_EQ(kernel.match(), ATUNNER_MATCH_DEVICE) << kernel.match_text();
  EXPECT_LE(LaunchAndCompare(kernel, loaded.spec, other), test.tolerance);
  if (*test.not_free == '\0') return;
  other[test.not_free] += 8;
  EXPECT_THROW(Choose(loaded, other), runtime::Error);
}
INSTANTIATE_TEST_SUITE_P(Operators, EveryFamily, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

#ifndef ATUNNER_ON_GPU
TEST_F(EndToEnd, AnotherGpuRunsThePtxAndSaysSo) {
  Optimize(kCases[0].task);
  const Artifact loaded = LoadArtifact(artifact()).value();
  driver_->Play("H200");
  const runtime::Kernel kernel = Choose(loaded, loaded.spec.dims);
  EXPECT_EQ(kernel.match(), ATUNNER_MATCH_COMPATIBLE);
  EXPECT_THAT(kernel.match_text(), HasSubstr("tuned for NVIDIA A100"));
  EXPECT_LE(LaunchAndCompare(kernel, loaded.spec, loaded.spec.dims), kCases[0].tolerance);
}

TEST_F(EndToEnd, ASecondRunReplacesTheArtifact) {
  Optimize("--operator softmax --input-shape 48,512");
  Optimize("--operator softmax --input-shape 48,256");
  EXPECT_EQ(LoadArtifact(artifact())->spec.dims.at("cols"), 256);
}

#ifdef ATUNNER_EXAMPLE
TEST_F(EndToEnd, TheExampleProgramRunsIt) {
  Optimize("--operator softmax --input-shape 48,512");
  const std::string run = "ATUNNER_LIBCUDA=" ATUNNER_DRIVER " " ATUNNER_EXAMPLE " ";
  const Outcome tuned = RunShell(home(), run + "best 48 512");
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(
      tuned.out,
      HasSubstr(
          "tuned for NVIDIA A100-SXM4-80GB at this size, predicted\n48 x 512: largest error"));
  EXPECT_THAT(tuned.out, HasSubstr("correct"));
  EXPECT_THAT(RunShell(home(), run + "best 5 512").out, HasSubstr("at another size"));
  const Outcome wrong = RunShell(home(), run + "best 48 500");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("the kernel is made for cols = 512, not 500"));
  EXPECT_THAT(RunShell(home(), run + "nowhere 48 512").err, HasSubstr("nowhere"));
}
#endif
#endif

}  // namespace
}  // namespace atunner
