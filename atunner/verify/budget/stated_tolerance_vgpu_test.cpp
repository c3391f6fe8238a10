// Tolerances that a task states and that trivial outputs would meet.
#include <gmock/gmock.h>

#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

class StatedToleranceTest : public VirtualGpuTest {
 protected:
  /// The task of a user's kernel with two outputs: y = `first` and z = `second` of x. One block per
  /// row of 300 numbers.
  void SetTask(const std::string& first, const std::string& second, const Fill& fill = {}) {
    spec_ = {};
    spec_.name = "two";
    spec_.dims = {{"rows", 4}, {"n", 300}};
    for (const char* name : {"x", "y", "z"}) {
      ArgSpec arg;
      arg.name = name;
      arg.role = *name == 'x' ? Role::kInput : Role::kOutput;
      arg.shape = {Expr::MustParse("rows"), Expr::MustParse("n")};
      if (*name == 'x') arg.fill = fill;
      spec_.args.push_back(arg);
    }
    LaunchStep step{.entry = "k", .grid = {Expr::MustParse("rows"), 1, 1}, .block = {32, 1, 1}};
    for (const char* name : {"x", "y", "z"}) step.args.push_back(ArgBinding::Tensor(name));
    spec_.oracle.kind = Oracle::Kind::kKernel;
    spec_.oracle.kernel.emplace();
    spec_.oracle.kernel->plan.steps = {step};
    spec_.oracle.kernel->source.text =
        "extern \"C\" __global__ void k(const float* x, float* y, float* z) {\n"
        "  x += blockIdx.x * 300, y += blockIdx.x * 300, z += blockIdx.x * 300;\n"
        "  float s = 0;\n  for (int i = 0; i < 300; ++i) s += expf(x[i]);\n"
        "  for (int i = threadIdx.x; i < 300; i += 32) {\n    y[i] = " +
        first + ";\n    z[i] = " + second + ";\n  }\n}\n";
  }

  /// The error of the task, or "" if the kernel is judged to be correct.
  std::string ErrorOf(std::optional<double> relative, std::optional<double> absolute) {
    spec_.tolerance.relative = relative;
    spec_.tolerance.absolute = absolute;
    auto verifier = Verifier::Make(gpu_, *compiler_, spec_, {});
    if (!verifier) return verifier.error().ToString();
    const RenderedKernel& kernel = *spec_.oracle.kernel;
    const auto verified = (*verifier)->Verify(
        std::make_shared<const CandidateKernel>(Compile(kernel.source.text, kernel.plan)));
    if (!verified) {
      EXPECT_EQ(verified.error().code, ErrorCode::kInvalidInput);
      return verified.error().ToString();
    }
    const auto* verdict = std::get_if<Verdict>(&*verified);
    return verdict == nullptr ? "" : verdict->reason;
  }

  KernelSpec spec_;
};

constexpr const char* kSoftmax = "expf(x[i]) / s";

Fill Uniform() {
  Fill fill;
  fill.kind = Fill::Kind::kUniform;
  return fill;
}

TEST_F(StatedToleranceTest, ThatZerosMeetIsRefusedWithAllSuchOutputs) {
  SetTask(kSoftmax, "2 * x[i]", Uniform());
  const std::string error = ErrorOf(1e-2, 1e-2);  // results of the softmax are about 1/300
  EXPECT_THAT(error, HasSubstr("the tolerance (relative 0.01, absolute 0.01) cannot tell the "
                               "result from zeros: 'y' (a constant or zeros)"));
  EXPECT_THAT(error, Not(HasSubstr("'z'")));
  EXPECT_EQ(ErrorOf(1e-3, 1e-6), "");
  EXPECT_EQ(ErrorOf(std::nullopt, 1e-4), "");
  EXPECT_EQ(ErrorOf(std::nullopt, std::nullopt), "");
  SetTask(kSoftmax, kSoftmax, Uniform());
  EXPECT_THAT(ErrorOf(std::nullopt, 1e-2), HasSubstr("'z' (a constant or zeros)"));
}

TEST_F(StatedToleranceTest, OneInstanceThatTellsThemApartIsEnough) {
  SetTask(kSoftmax, "2 * x[i]");
  // Among normal inputs zeros are within the tolerance, with large logits some results are 1.
  EXPECT_EQ(ErrorOf(1e-2, 2e-1), "");
}

TEST_F(StatedToleranceTest, OfTheSizeOfTheResultIsRefused) {
  SetTask("x[i] + 1", "2 * x[i]");
  EXPECT_THAT(ErrorOf(1.5, std::nullopt), HasSubstr("zeros"));
}

TEST_F(StatedToleranceTest, CopiesAreRightWhereTheKernelCopies) {
  SetTask("x[i]", "2 * x[i]");
  EXPECT_EQ(ErrorOf(1e-3, std::nullopt), "");
  SetTask("1.0001f * x[i]", "2 * x[i]");
  EXPECT_THAT(ErrorOf(1e-3, std::nullopt), HasSubstr("from a copy of 'x': 'y' (a copy of 'x')"));
  EXPECT_EQ(ErrorOf(1e-5, std::nullopt), "");
}

TEST_F(StatedToleranceTest, ResultsThatAreZeroByThemselvesAreNoFaultOfTheTolerance) {
  SetTask("x[i] > 1e30f ? x[i] : 0", "2 * x[i]", Uniform());
  EXPECT_EQ(ErrorOf(1e-3, std::nullopt), "");
}

}  // namespace
}  // namespace atunner
