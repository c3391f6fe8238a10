// The whole verifier on the virtual GPU: guard zones, hidden references, tasks that prove little.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <type_traits>

#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/operator.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;

static_assert(
    !std::is_constructible_v<VerifiedKernel, std::shared_ptr<const CandidateKernel>, Verdict>,
    "nothing but the verifier makes a proof");
static_assert(!std::is_default_constructible_v<VerifiedKernel>);

KernelSpec Softmax(int64_t rows, int64_t cols, DType dtype = DType::kFloat32) {
  return FindOperator("softmax")->Instantiate({{{rows, cols}}, dtype, {}}).value();
}

/// One thread per row is enough for these tests.
LaunchPlan RowPlan() {
  LaunchStep step;
  step.entry = "k";
  step.grid[0] = Expr::MustParse("rows");
  step.block[0] = 32;
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")),
               ArgBinding::Scalar(DType::kInt64, Expr::MustParse("cols"))};
  return {.steps = {step}};
}

/// A correct row softmax followed by `more`, all in thread 0.
std::string RowKernel(const std::string& more) {
  return "extern \"C\" __global__ void k(const float* x, float* y, long long rows, long long cols) "
         "{\n"
         "  if (threadIdx.x) return;\n  const long long at = blockIdx.x * cols;\n  float m = "
         "x[at], s = 0;\n"
         "  for (int i = 0; i < cols; ++i) m = (x[at + i] > m || x[at + i] != x[at + i]) ? x[at + "
         "i] : m;\n"
         "  for (int i = 0; i < cols; ++i) s += expf(x[at + i] - m);\n"
         "  for (int i = 0; i < cols; ++i) y[at + i] = expf(x[at + i] - m) / s;\n" +
         more + "}\n";
}

class VerifierTest : public VirtualGpuTest {
 protected:
  Verdict Judge(Device& device, const KernelSpec& spec, const CandidateKernel& candidate,
                VerifyLevel level = VerifyLevel::kComplete,
                std::optional<double> time_limit_seconds = {}) {
    auto verifier = Verifier::Make(device, *compiler_, spec, options_);
    EXPECT_TRUE(verifier.has_value()) << verifier.error().ToString();
    auto verified = (*verifier)->Verify(std::make_shared<const CandidateKernel>(candidate), level,
                                        time_limit_seconds);
    EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
    if (const auto* refused = std::get_if<Verdict>(&*verified)) return *refused;
    return std::get<VerifiedKernel>(*verified).verdict();
  }

  VerifyOptions options_;
};

class GuardTest : public VirtualGpuTest {
 protected:
  UncheckedGpu device_{gpu_};
};

TEST_F(GuardTest, OneByteBeyondEitherEndShowsAndTheEndsThemselvesDoNot) {
  const KernelSpec spec = Softmax(3, 7);
  for (uint32_t skew : {0u, 1u}) {
    const TaskBuffers buffers = TaskBuffers::Allocate(device_, spec, spec.dims, skew).value();
    for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
      const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
      const auto touched = [&](DeviceAddress at) {
        EXPECT_TRUE(buffers.ArmGuards());
        EXPECT_TRUE(device_.Fill(at, 0, 1));
        return buffers.BrokenGuard(*kernels_).value().value_or("");
      };
      EXPECT_EQ(touched(tensor.address), "");
      EXPECT_EQ(touched(tensor.address + bytes - 1), "");
      EXPECT_EQ(touched(tensor.address + bytes), tensor.spec->name + ", 0 bytes after its end");
      EXPECT_EQ(touched(tensor.address + bytes + 16383),
                tensor.spec->name + ", 16383 bytes after its end");
      EXPECT_EQ(touched(tensor.address - 1), tensor.spec->name + ", 1 bytes before its start");
      EXPECT_EQ(touched(tensor.address - 16384),
                tensor.spec->name + ", 16384 bytes before its start");
    }
  }
}

TEST_F(GuardTest, SlotsDifferInEveryPointersLowBits) {
  const KernelSpec spec = Softmax(3, 7);
  const TaskBuffers zero = TaskBuffers::Allocate(device_, spec, spec.dims, 0).value();
  const TaskBuffers one = TaskBuffers::Allocate(device_, spec, spec.dims, 1).value();
  for (const char* name : {"x", "y"}) {
    EXPECT_EQ(zero.Find(name)->address % 256, 0u);
    EXPECT_EQ((one.Find(name)->address - one.Find(name)->memory->address()) -
                  (zero.Find(name)->address - zero.Find(name)->memory->address()),
              256u);
  }
}

TEST_F(GuardTest, ALentInputIsFurtherUpBetweenZonesOfItsOwn) {
  const KernelSpec spec = Softmax(3, 7);
  const TaskBuffers zero = TaskBuffers::Allocate(device_, spec, spec.dims, 0).value();
  const TaskBuffers one = TaskBuffers::AllocateBeside(zero, spec, 1, Lent::kInputs).value();
  EXPECT_EQ(zero.WrittenBytes(), 3u * 7 * 4);
  EXPECT_EQ(one.Find("x")->address, zero.Find("x")->address + 256);
  const TaskBuffers::Tensor& first = *zero.Find("y");
  const DeviceAddress other = one.Find("y")->address;
  EXPECT_TRUE(other + first.memory->bytes() <= first.memory->address() ||
              other >= first.memory->address() + first.memory->bytes())
      << "outputs of two runs are compared";
  for (const TaskBuffers* buffers : {&one, &zero}) {
    const DeviceAddress end = buffers->Find("x")->address + 3 * 7 * 4;
    ASSERT_TRUE(buffers->ArmGuards());
    EXPECT_EQ(buffers->BrokenGuard(*kernels_).value().value_or(""), "");
    ASSERT_TRUE(device_.Fill(end + 16383, 0, 1)) << "inside the allocation";
    EXPECT_EQ(buffers->BrokenGuard(*kernels_).value().value_or(""), "x, 16383 bytes after its end");
  }
}

TEST_F(VerifierTest, AByteBesideTheOutputIsOutOfBoundsWithAndWithoutBoundsChecks) {
  const KernelSpec spec = Softmax(4, 33);
  UncheckedGpu unchecked(gpu_);
  const auto beyond = Compile(
      RowKernel("  if (blockIdx.x == rows - 1) ((char*)(y + rows * cols))[0] = 1;\n"), RowPlan());
  const auto before = Compile(RowKernel("  if (blockIdx.x == 0) ((char*)y)[-1] = 1;\n"), RowPlan());
  const auto inside = Compile(RowKernel(""), RowPlan());
  for (Device* device : {static_cast<Device*>(&gpu_), static_cast<Device*>(&unchecked)}) {
    EXPECT_EQ(Judge(*device, spec, beyond).kind, VerdictKind::kOutOfBounds);
    EXPECT_EQ(Judge(*device, spec, before).kind, VerdictKind::kOutOfBounds);
    const Verdict fine = Judge(*device, spec, inside);
    EXPECT_EQ(fine.kind, VerdictKind::kCorrect) << fine.reason;
  }
  EXPECT_THAT(Judge(unchecked, spec, beyond).reason, HasSubstr("y, 0 bytes after its end"));
}

TEST_F(VerifierTest, ThePlainKernelMeetsOneDrawingOfEverySize) {
  const auto met = [](const Verdict& verdict) {
    std::map<Dims, int> oracles;
    for (const CheckRecord& record : verdict.checks)
      oracles[record.dims] += record.check == "oracle" ? 1 : 0;
    return oracles;
  };
  const KernelSpec spec = Softmax(4, 33);
  CandidateKernel plain = Compile(RowKernel(""), RowPlan());
  plain.check_dims = {{{"rows", 2}, {"cols", 33}}, {{"rows", 4}, {"cols", 33}}};
  const Verdict brief = Judge(gpu_, spec, plain, VerifyLevel::kBaseline);
  EXPECT_THAT(met(brief), testing::Each(testing::Pair(testing::_, 1)));
  EXPECT_THAT(brief.checks,
              testing::Each(testing::Field(&CheckRecord::check, testing::Ne("repeat"))));
  EXPECT_THAT(met(Judge(gpu_, spec, plain)),
              testing::Each(testing::Pair(testing::_, testing::Gt(1))));
  const auto wrong = Compile(RowKernel("  y[at] = 7;\n"), RowPlan());
  EXPECT_EQ(Judge(gpu_, spec, wrong, VerifyLevel::kBaseline).kind, VerdictKind::kWrongResult);

  // The time limit is over too, but launches are still repeated.
  const Verdict late = Judge(gpu_, spec, plain, VerifyLevel::kComplete, 0.0);
  EXPECT_THAT(met(late), testing::Each(testing::Pair(testing::_, 1)));
  EXPECT_THAT(late.checks, testing::Contains(testing::Field(&CheckRecord::check, "repeat")));
  EXPECT_THAT(met(Judge(gpu_, spec, plain, VerifyLevel::kComplete, 1e9)),
              testing::Each(testing::Pair(testing::_, testing::Gt(1))));
  EXPECT_EQ(Judge(gpu_, spec, wrong, VerifyLevel::kComplete, 0.0).kind, VerdictKind::kWrongResult);
}

// Block 1 computes the first result once more, in another way: which of the two remains is a matter
// of chance, and both are right.
TEST_F(VerifierTest, BlocksThatRaceAreRefusedAlthoughTheResultIsRight) {
  KernelSpec spec = Softmax(4, 33);
  const auto racing = Compile(
      RowKernel("  if (blockIdx.x != 1) return;\n  m = x[0];\n  s = 0;\n"
                "  for (int i = 0; i < cols; ++i) m = (x[i] > m || x[i] != x[i]) ? x[i] : m;\n"
                "  for (int i = 0; i < cols; ++i) s += expf(x[i] - m);\n"
                "  y[0] = 1.0000001f * (expf(x[0] - m) / s);\n"),
      RowPlan());
  const Verdict verdict = Judge(gpu_, spec, racing);
  EXPECT_EQ(verdict.kind, VerdictKind::kRace) << verdict.reason;
  spec.tolerance.allow_nondeterminism = true;
  EXPECT_EQ(Judge(gpu_, spec, racing).kind, VerdictKind::kCorrect);
}

/// A correct row softmax with a workspace `w` of two floats per row, followed by `more`.
std::string RowKernelWithWorkspace(const std::string& more) {
  std::string text = RowKernel(more);
  text.replace(text.find("long long cols)"), 15, "long long cols, float* w)");
  return text;
}
LaunchPlan RowPlanWithWorkspace() {
  LaunchPlan plan = RowPlan();
  plan.workspaces = {{"w", Expr::MustParse("8 * rows")}};
  plan.steps[0].args.push_back(ArgBinding::Workspace("w"));
  return plan;
}

// What outputs and workspaces held before the launch is no input. The virtual GPU sees every read
// of it; a real one sees that other poison, or another order, gives another result.
class IndependenceTest : public VerifierTest {
 protected:
  Verdict OnVirtualGpu(const std::string& more) {
    return Judge(gpu_, Softmax(64, 33),
                 Compile(RowKernelWithWorkspace(more), RowPlanWithWorkspace()));
  }
  /// As on a real GPU, where nothing notices a read of unwritten memory.
  Verdict Unnoticed(const std::string& more) {
    blind_.hides_unwritten = true;
    return Judge(blind_, Softmax(64, 33),
                 Compile(RowKernelWithWorkspace(more), RowPlanWithWorkspace()));
  }
  UncheckedGpu blind_{gpu_};
};

TEST_F(IndependenceTest, WhatTheOutputHeldShows) {
  const std::string old = "extern \"C\" __global__ void k(";
  for (const char* use : {"fmaxf(old, v)", "fminf(old, v)", "v + 1e-3f * old",
                          "old == old && fabsf(old) < 1e30f ? v + old * 1e-3f : v",
                          "__int_as_float(__float_as_int(v) | __float_as_int(old))",
                          "__float_as_uint(old) == 0xfefefefeu ? v : 0.0f",
                          "old == 0.0f ? 0.0f : fabsf(old) > 1e3f ? v : 0.0f"}) {
    std::string text = RowKernelWithWorkspace("");
    const std::string store = "y[at + i] = expf(x[at + i] - m) / s;";
    text.replace(text.find(store), store.size(),
                 std::string("{ const float v = expf(x[at + i] - m) / s, old = y[at + i]; "
                             "y[at + i] = ") +
                     use + "; }");
    const CandidateKernel kernel = Compile(text, RowPlanWithWorkspace());
    const Verdict seen = Judge(gpu_, Softmax(64, 33), kernel);
    EXPECT_EQ(seen.kind, VerdictKind::kRace) << use << ": " << seen.reason;
    blind_.hides_unwritten = true;
    EXPECT_NE(Judge(blind_, Softmax(64, 33), kernel).kind, VerdictKind::kCorrect) << use;
  }
}

TEST_F(IndependenceTest, WhatAWorkspaceHeldShows) {
  const char* use = "  y[at] = fmaxf(w[blockIdx.x], y[at]);\n";
  EXPECT_EQ(OnVirtualGpu(use).kind, VerdictKind::kRace);
  EXPECT_NE(Unnoticed(use).kind, VerdictKind::kCorrect);
  const char* written = "  w[blockIdx.x] = y[at];\n  y[at] = w[blockIdx.x];\n";
  const Verdict honest = OnVirtualGpu(written);
  EXPECT_EQ(honest.kind, VerdictKind::kCorrect) << honest.reason;
  EXPECT_EQ(Unnoticed(written).kind, VerdictKind::kCorrect);
}

TEST_F(IndependenceTest, AddressesDoNotShow) {
  for (const char* odd : {"0", "1"}) {
    const std::string use = "  if (((unsigned long long)y >> 9) % 2 == " + std::string(odd) +
                            ") y[at] = 0;\n";
    EXPECT_NE(OnVirtualGpu(use).kind, VerdictKind::kCorrect) << odd;
  }
}

// Blocks take numbers in the order in which they start.
TEST_F(IndependenceTest, TheOrderOfBlocksDoesNotShow) {
  const auto with_tickets = [&](const std::string& more) {
    std::string text = "__device__ unsigned ticket;\n" +
                       RowKernel("  const unsigned mine = atomicInc(&ticket, gridDim.x - 1);\n" +
                                 more);
    return Judge(gpu_, Softmax(64, 33), Compile(text, RowPlan()));
  };
  const Verdict depends = with_tickets("  if (mine != blockIdx.x) y[at] = 0;\n");
  EXPECT_NE(depends.kind, VerdictKind::kCorrect);
  const Verdict honest = with_tickets("  if (mine > rows) y[at] = 0;\n");
  EXPECT_EQ(honest.kind, VerdictKind::kCorrect) << honest.reason;
}

TEST_F(IndependenceTest, WhatAnotherBlockWroteBeforeDoesNotShow) {
  KernelSpec spec = Softmax(64, 33);
  spec.tolerance.allow_nondeterminism = true;  // races are allowed then, but no wrong results
  const auto text = RowKernel(
      "  if (blockIdx.x > 31 && ((volatile float*)y)[at - 31 * cols] > "
      "1.0f) y[at] = 0;\n");
  EXPECT_NE(Judge(gpu_, spec, Compile(text, RowPlan())).kind, VerdictKind::kCorrect);
}

// A kernel of a chain of blocks: each waits for the one before it.
TEST_F(IndependenceTest, BlocksMayWaitForEachOther) {
  const std::string text =
      "__device__ unsigned turn;\n" +
      RowKernel(
          "  while (atomicAdd(&turn, 0) != blockIdx.x) {}\n  __threadfence();\n"
          "  atomicExch(&turn, blockIdx.x + 1 == gridDim.x ? 0 : blockIdx.x + 1);\n");
  const Verdict verdict = Judge(gpu_, Softmax(300, 33), Compile(text, RowPlan()));
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
}

/// A user's task: y of `size` elements of `y` from x of 40 int32; `body` computes y[i].
KernelSpec UserTask(DType y, const std::string& text, const LaunchPlan& plan) {
  KernelSpec spec;
  spec.name = "user";
  spec.dims = {{"n", 40}};
  const auto tensor = [](const char* name, Role role, DType dtype) {
    return ArgSpec{.name = name,
                   .role = role,
                   .dtype = dtype,
                   .shape = {Expr::MustParse("n")},
                   .value = {},
                   .fill = {}};
  };
  spec.args = {tensor("x", Role::kInput, DType::kInt32), tensor("y", Role::kOutput, y)};
  spec.oracle.kind = Oracle::Kind::kKernel;
  spec.oracle.kernel.emplace();
  spec.oracle.kernel->source.text = text;
  spec.oracle.kernel->plan = plan;
  return spec;
}
LaunchPlan UserPlan() {
  LaunchStep step{.entry = "k", .block = {64, 1, 1}};
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse("n"))};
  return {.steps = {step}};
}
std::string UserKernel(const char* type, const char* body) {
  return fmt::format(
      "extern \"C\" __global__ void k(const int* x, {0}* y, int n) {{ int i = threadIdx.x; "
      "if (i < n) {{ {1} }} }}",
      type, body);
}

TEST_F(VerifierTest, WideIntegersOfAUsersKernelAreComparedExactly) {
  constexpr const char* kHash = "0x9e3779b97f4a7c15ull * (x[i] + 1000) | 1ull << 63";
  const auto text = [](const std::string& value) {
    return UserKernel("unsigned long long", ("y[i] = " + value + ";").c_str());
  };
  const KernelSpec spec = UserTask(DType::kUInt64, text(kHash), UserPlan());
  const auto judge = [&](const std::string& value) {
    return Judge(gpu_, spec, Compile(text(value), UserPlan()));
  };
  const Verdict honest = judge(fmt::format("1ull << 63 | ({})", kHash));
  EXPECT_EQ(honest.kind, VerdictKind::kCorrect) << honest.reason;
  EXPECT_NE(judge(fmt::format("({}) ^ (i == 7)", kHash)).kind, VerdictKind::kCorrect);
  EXPECT_NE(judge(fmt::format("({}) & ~0x7ffull", kHash)).kind, VerdictKind::kCorrect);
}

TEST_F(VerifierTest, InfinityOfAUsersKernelIsMetByItselfOnly) {
  const auto text = [](const char* other) {
    return UserKernel("float", fmt::format("y[i] = x[i] > 0 ? x[i] : {};", other).c_str());
  };
  const char* kInfinity = "__int_as_float(0x7f800000)";
  const KernelSpec spec = UserTask(DType::kFloat32, text(kInfinity), UserPlan());
  EXPECT_EQ(Judge(gpu_, spec, Compile(text(kInfinity), UserPlan())).kind, VerdictKind::kCorrect);
  for (const char* other : {"1.0f", "3e38f", "-__int_as_float(0x7f800000)", "0.0f / 0.0f * x[i]"})
    EXPECT_NE(Judge(gpu_, spec, Compile(text(other), UserPlan())).kind, VerdictKind::kCorrect)
        << other;
}

// A program may pass one buffer as both tensors if the kernel as given works in place.
TEST_F(VerifierTest, WhereTheKernelAsGivenWorksInPlaceEveryCandidateMust) {
  const auto text = [](const char* qualifier, const char* body) {
    return fmt::format(
        "extern \"C\" __global__ void k(const float* {0} x, float* {0} y, int n) {{ int i = "
        "threadIdx.x; if (i < n) {{ {1} }} }}",
        qualifier, body);
  };
  constexpr const char* kMean = "y[i] = 0.5f * (y[i] + x[i]);";
  constexpr const char* kNotInPlace = "y[i] = 0.5f * (y[i] + x[i]); if (x == y) y[i] = 0;";
  // reads x again after it has written y
  constexpr const char* kTwice = "y[i] = 0.5f * y[i]; y[i] += 0.5f * x[i];";
  const auto judge = [&](const std::string& given, const std::string& candidate) {
    KernelSpec spec = UserTask(DType::kFloat32, given, UserPlan());
    for (ArgSpec& arg : spec.args) arg.dtype = DType::kFloat32;
    spec.args[1].role = Role::kInOut;
    return Judge(gpu_, spec, Compile(candidate, UserPlan()));
  };
  const Verdict honest = judge(text("", kMean), text("__restrict__", "y[i] = (x[i] + y[i]) / 2;"));
  EXPECT_EQ(honest.kind, VerdictKind::kCorrect) << honest.reason;
  const Verdict refused = judge(text("", kMean), text("", kNotInPlace));
  EXPECT_EQ(refused.kind, VerdictKind::kWrongResult);
  EXPECT_THAT(refused.reason, HasSubstr("one buffer for 'x' and 'y'"));
  EXPECT_EQ(judge(text("__restrict__", kMean), text("", kNotInPlace)).kind, VerdictKind::kCorrect)
      << "the source promises two buffers";
  EXPECT_EQ(judge(text("", kTwice), text("", kNotInPlace)).kind, VerdictKind::kCorrect)
      << "nor does the kernel as given";
}

// What the kernel as given leaves unwritten, every candidate must, integers too.
TEST_F(VerifierTest, WhatTheKernelAsGivenLeavesUnwrittenStaysUnwritten) {
  for (const auto& [dtype, type] :
       {std::pair(DType::kFloat32, "float"), std::pair(DType::kInt32, "int"),
        std::pair(DType::kInt8, "signed char"), std::pair(DType::kInt64, "long long")}) {
    const auto text = [&, type = type](const char* body) { return UserKernel(type, body); };
    const KernelSpec spec = UserTask(dtype, text("if (i % 3 != 1) y[i] = x[i] + i;"), UserPlan());
    const auto judge = [&](const char* body) {
      return Judge(gpu_, spec, Compile(text(body), UserPlan()));
    };
    const Verdict same = judge("if (i % 3 == 1) return; y[i] = i + x[i];");
    EXPECT_EQ(same.kind, VerdictKind::kCorrect) << Name(dtype) << same.reason;
    EXPECT_NE(judge("y[i] = x[i] + i;").kind, VerdictKind::kCorrect) << Name(dtype);
    EXPECT_EQ(judge("if (i % 3 == 0) y[i] = x[i] + i;").kind, VerdictKind::kNotWritten)
        << Name(dtype);
  }
}

/// A dot product of rows, with or without rounding the factors to TF32.
std::string DotKernel(bool narrow) {
  const std::string load = narrow ? "__uint_as_float((__float_as_uint(v) + 0x1000u) & ~0x1fffu)"
                                  : "v";
  return "__device__ float at(float v) { return " + load +
         "; }\n"
         "extern \"C\" __global__ void k(const float* a, const float* b, float* y, long long rows) "
         "{\n"
         "  if (threadIdx.x) return;\n  float s = 0;\n"
         "  for (int i = 0; i < 64; ++i) s = fmaf(at(a[blockIdx.x * 64 + i]), at(b[blockIdx.x * 64 "
         "+ i]), s);\n"
         "  y[blockIdx.x] = s;\n}\n";
}

TEST_F(VerifierTest, AccuracyPoliciesTellTf32FromFloat32) {
  KernelSpec spec = FindOperator("dot")->Instantiate({{{40, 64}}, DType::kFloat32, {}}).value();
  LaunchPlan plan = RowPlan();
  plan.steps[0].args = {ArgBinding::Tensor("a"), ArgBinding::Tensor("b"), ArgBinding::Tensor("y"),
                        ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows"))};
  const auto narrow = Compile(DotKernel(true), plan);
  const auto honest = Compile(DotKernel(false), plan);
  EXPECT_EQ(Judge(gpu_, spec, honest).kind, VerdictKind::kCorrect);
  EXPECT_EQ(Judge(gpu_, spec, narrow).kind, VerdictKind::kLowPrecision);
  SetAccuracy(spec, Accuracy::kFast);
  const Verdict fast = Judge(gpu_, spec, narrow);
  EXPECT_EQ(fast.kind, VerdictKind::kCorrect) << fast.reason;
  for (const CheckRecord& check : fast.checks) {
    if (check.check == "oracle" && check.family == "normal")
      EXPECT_LT(check.honest, 1e-6) << "the plain kernel's own";
  }
  SetAccuracy(spec, Accuracy::kStrict);
  EXPECT_EQ(Judge(gpu_, spec, narrow).kind, VerdictKind::kLowPrecision);
}

TEST_F(VerifierTest, AProofListsItsChecksWithErrorAndBound) {
  const KernelSpec spec = Softmax(4, 33);
  const Verdict verdict = Judge(gpu_, spec, Compile(RowKernel(""), RowPlan()));
  ASSERT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  std::vector<std::string> families;
  for (const CheckRecord& check : verdict.checks) {
    EXPECT_TRUE(check.passed);
    if (check.check != "oracle") continue;
    families.push_back(check.family);
    if (check.family == "nan") continue;
    EXPECT_GT(check.bound, 0) << check.family;
    EXPECT_LE(check.error, check.bound) << check.family;
    EXPECT_EQ(check.dims, spec.dims);
  }
  for (const char* family :
       {"normal", "normal, one element changed", "needle", "heavy-tail", "large-logits", "nan"})
    EXPECT_THAT(families, testing::Contains(family));
}

// Softmax of rows of one element is always 1, so that a constant would pass every instance. A
// kernel that passes has shown little, but one that fails is wrong.
TEST_F(VerifierTest, WhereNothingDiscriminatesAWrongKernelIsStillWrong) {
  const KernelSpec spec = Softmax(9, 1);
  const Verdict honest = Judge(gpu_, spec, Compile(RowKernel(""), RowPlan()));
  EXPECT_EQ(honest.kind, VerdictKind::kCorrect) << honest.reason;
  EXPECT_FALSE(honest.checks.empty()) << "no proof without a check";
  const std::string open =
      "extern \"C\" __global__ void k(const float* x, float* y, long long rows, long long cols) {";
  EXPECT_EQ(Judge(gpu_, spec, Compile(open + "}", RowPlan())).kind, VerdictKind::kNotWritten);
  EXPECT_NE(Judge(gpu_, spec, Compile(open + " y[blockIdx.x] = 0; }", RowPlan())).kind,
            VerdictKind::kCorrect);
}

// Scores of 1e38 · 64 overflow float32 although their softmax does not: only the float64 reference
// has a result.
TEST_F(VerifierTest, WhereEvenThePlainKernelOverflowsNothingIsDecided) {
  KernelSpec spec =
      FindOperator("attention")->Instantiate({{{1, 1, 8, 64}}, DType::kFloat32, {}}).value();
  for (ArgSpec& arg : spec.args) {
    if (arg.role == Role::kInput)
      arg.fill = {.kind = Fill::Kind::kConstant, .low = 1e19, .path = {}};
  }
  const RenderedKernel naive = FindOperator("attention")->Naive(spec);
  const Verdict verdict = Judge(gpu_, spec, Compile(naive.source.text, naive.plan));
  EXPECT_EQ(verdict.kind, VerdictKind::kInconclusive) << verdict.reason;
}

TEST_F(VerifierTest, InfinityIsTheRightAnswerBeyondTheTypesRange) {
  KernelSpec spec = FindOperator("matmul")->Instantiate({{{8, 8, 8}}, DType::kFloat16, {}}).value();
  for (ArgSpec& arg : spec.args) {
    if (arg.role == Role::kInput)
      arg.fill = {.kind = Fill::Kind::kConstant, .low = 200, .path = {}};
  }
  const RenderedKernel naive = FindOperator("matmul")->Naive(spec);
  const Verdict verdict = Judge(gpu_, spec, Compile(naive.source.text, naive.plan));
  // 8 · 200² is beyond 65504.
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
}

TEST_F(VerifierTest, IntegersThatEqualThePoisonAreLegitimate) {
  KernelSpec spec;
  spec.name = "poison_bits";
  spec.dims = {{"n", 40}};
  const auto tensor = [](const char* name, Role role) {
    return ArgSpec{.name = name,
                   .role = role,
                   .dtype = DType::kInt32,
                   .shape = {Expr::MustParse("n")},
                   .value = {},
                   .fill = {}};
  };
  spec.args = {tensor("x", Role::kInput), tensor("y", Role::kOutput)};
  LaunchStep step;
  step.entry = "k";
  step.block[0] = 64;
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse("n"))};
  const LaunchPlan plan{.steps = {step}};
  const auto text = [](const char* value) {
    return std::string(
               "extern \"C\" __global__ void k(const int* x, int* y, int n) { int i = threadIdx.x; "
               "if (i < n) y[i] "
               "= ") +
           value + "; }";
  };
  spec.oracle.kind = Oracle::Kind::kKernel;
  RenderedKernel oracle;
  oracle.source.text = text("x[i] > 0 ? -16843010 : x[i]");
  oracle.plan = plan;
  spec.oracle.kernel = oracle;
  const Verdict same = Judge(gpu_, spec, Compile(text("x[i] <= 0 ? x[i] : -16843010"), plan));
  EXPECT_EQ(same.kind, VerdictKind::kCorrect) << same.reason;
  EXPECT_NE(Judge(gpu_, spec, Compile(text("x[i] > 0 ? -16843010 : x[i] + (i == 7)"), plan)).kind,
            VerdictKind::kCorrect);
}

TEST_F(VerifierTest, ResultsOfInOutTensorsAreToldFromInputsAtTheOwnSize) {
  KernelSpec spec;
  spec.name = "in_place";
  spec.dims = {{"n", 32 * 200}};
  const auto tensor = [](const char* name, const char* size) {
    return ArgSpec{.name = name,
                   .role = Role::kInOut,
                   .dtype = DType::kInt32,
                   .shape = {Expr::MustParse(size)},
                   .value = {},
                   .fill = {}};
  };
  spec.args = {tensor("y", "n"), tensor("sum", "1")};
  LaunchStep step;
  step.entry = "k";
  step.grid[0] = 200;
  step.block[0] = 32;
  step.args = {ArgBinding::Tensor("y"), ArgBinding::Tensor("sum")};
  const LaunchPlan plan{.steps = {step}};
  const auto text = [](const char* value, const char* more) {
    return fmt::format(
        "extern \"C\" __global__ void k(int* y, int* sum) {{\n"
        "  const int i = blockIdx.x * 32 + threadIdx.x;\n  y[i] = {};\n  {}\n}}",
        value, more);
  };
  constexpr const char* kSum = "if (threadIdx.x == 0) atomicAdd(sum, 1);";
  constexpr const char* kOnce = "if (i == 32 * 37) sum[0] = 5;";
  options_.work.compare_all = 0;
  for (const char* more : {"", kSum, kOnce}) {
    spec.oracle.kind = Oracle::Kind::kKernel;
    spec.oracle.kernel.emplace();
    spec.oracle.kernel->source.text = text("3 * y[i] + 1", more);
    spec.oracle.kernel->plan = plan;
    const Verdict same = Judge(gpu_, spec, Compile(text("1 + y[i] * 3", more), plan));
    EXPECT_EQ(same.kind, VerdictKind::kCorrect) << more << same.reason;
    EXPECT_TRUE(same.coverage.whole());
    EXPECT_NE(Judge(gpu_, spec, Compile(text("3 * y[i] + 2", more), plan)).kind,
              VerdictKind::kCorrect)
        << more;
    EXPECT_NE(Judge(gpu_, spec, Compile(text("y[i]", more), plan)).kind, VerdictKind::kCorrect)
        << more;
  }
}

TEST_F(VerifierTest, ReferencesLieMaskedInMemoryAndAreKept) {
  const KernelSpec spec = Softmax(5, 19);
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
  const InputInstance instance{InputFamily::kNormal, 3, false};
  ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
  const Reference* reference = oracle->Get(buffers, instance).value();
  EXPECT_EQ(oracle->Get(buffers, instance).value(), reference) << "computed once";
  ASSERT_EQ(reference->outputs.size(), 1u);
  const Reference::Output& output = reference->outputs[0];

  std::vector<std::vector<double>> in(1);
  for (float v : Get<float>(buffers.Find("x")->address, 95))
    in[0].push_back(static_cast<double>(v));
  std::vector<std::vector<double>> out = {std::vector<double>(95)};
  ASSERT_TRUE(FindOperator("softmax")->Reference(spec, spec.dims, in, out));
  const auto masked = Get<double>(output.masked->address(), 95);
  for (size_t i = 0; i < 95; ++i) EXPECT_NE(masked[i], out[0][i]) << i;
  ASSERT_TRUE(kernels_->Mask(output.masked->address(), 95, output.key));
  EXPECT_EQ(Get<double>(output.masked->address(), 95), out[0]);
  double squares = 0;
  for (double v : out[0]) squares += v * v;
  EXPECT_NEAR(output.scale, std::sqrt(squares / 95), 1e-12);
  EXPECT_GT(output.budget.baseline_norm, 0) << "the plain kernel ran";
  EXPECT_TRUE(reference->discriminates());
}

TEST_F(VerifierTest, OldReferencesGiveWayWhenMemoryIsShort) {
  const KernelSpec spec = Softmax(5, 19);
  UncheckedGpu device(gpu_);
  device.free_bytes = 3 * 95 * sizeof(double);  // a third of it: one reference
  auto oracle = OracleStore::Make(device, *compiler_, *kernels_, spec).value();
  const TaskBuffers buffers = TaskBuffers::Allocate(device, spec, spec.dims, 0).value();
  const auto key_of = [&](uint64_t seed) {
    const InputInstance instance{InputFamily::kNormal, seed, false};
    EXPECT_TRUE(buffers.DrawInputs(*kernels_, instance));
    return oracle->Get(buffers, instance).value()->outputs[0].key;
  };
  const uint64_t first = key_of(1);
  EXPECT_EQ(key_of(1), first);
  (void)key_of(2);
  EXPECT_NE(key_of(1), first) << "was evicted, so it was computed and masked anew";
}

TEST_F(VerifierTest, WherePlainKernelsDoNotFitATaskIsTakenApartIntoEqualOnes) {
  const KernelSpec spec = FindOperator("attention_gqa")
                              ->Instantiate({{{2, 4, 65, 8}, {2, 2, 65, 8}}, DType::kFloat16, {}})
                              .value();
  const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
  const InputInstance instance{InputFamily::kNormal, 5, false};
  ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
  std::vector<int> launches;
  const auto honest = [&](uint64_t free_bytes) {
    UncheckedGpu device(gpu_);
    device.free_bytes = free_bytes;
    auto store = OracleStore::Make(device, *compiler_, *kernels_, spec).value();
    const auto reference = store->Get(buffers, instance);
    EXPECT_TRUE(reference.has_value()) << reference.error().ToString();
    std::vector<std::byte> written(static_cast<size_t>(buffers.Find("y")->shape.bytes));
    EXPECT_TRUE(gpu_.CopyOut(written, buffers.Find("y")->address));
    launches.push_back(device.launches);
    return std::pair((*reference)->outputs[0].budget.baseline_norm, written);
  };
  const auto whole = honest(0);
  EXPECT_GT(whole.first, 1e-5);
  EXPECT_EQ(honest(3 << 20), whole) << "eight heads of 65 × 65 scores, in float64 270 KB each time";
  EXPECT_EQ(launches[1], 2 * launches[0]) << "one sequence after the other";
}

TEST(ResourceObstacle, NamesTheResource) {
  const DeviceProfile profile = FindProfile("A100").value();
  const KernelSpec spec = Softmax(8, 64);
  CandidateKernel candidate;
  candidate.plan = RowPlan();
  KernelResources resources;
  resources.entry = resources.mangled = "k";
  resources.registers = 32;
  const auto obstacle = [&] {
    candidate.module.kernels = {resources};
    return ResourceObstacle(profile, candidate, spec).value_or("");
  };
  EXPECT_EQ(obstacle(), "");
  resources.static_shared_bytes = 100;
  candidate.plan.steps[0].shared_bytes = profile.shared_per_block - 100;
  EXPECT_EQ(obstacle(), "") << "exactly full";
  candidate.plan.steps[0].shared_bytes = profile.shared_per_block - 99;
  EXPECT_THAT(obstacle(), HasSubstr("shared memory"));
  candidate.plan.steps[0].shared_bytes = 0;
  candidate.plan.steps[0].block[0] = 256;
  resources.max_threads = 128;
  EXPECT_THAT(obstacle(), HasSubstr("at most 128 threads"));
  resources.max_threads = 1024;
  candidate.plan.steps[0].block[0] = 1024;
  resources.registers = 64;
  EXPECT_EQ(obstacle(), "");
  resources.registers = 65;
  EXPECT_THAT(obstacle(), HasSubstr("registers per block"));
  resources.registers = 200;
  candidate.plan.steps[0].block[0] = 320;
  EXPECT_THAT(obstacle(), HasSubstr("registers per block")) << "ten warps count as twelve";
  resources.entry = resources.mangled = "other";
  EXPECT_THAT(obstacle(), HasSubstr("no kernel 'k'"));
}

}  // namespace
}  // namespace atunner
