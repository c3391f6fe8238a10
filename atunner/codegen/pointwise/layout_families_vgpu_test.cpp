// What the families of columns, scans, transposes and elements write for graphs.
#include <cmath>

#include "atunner/codegen/tests/graph_kernels_test.h"
#include "atunner/cuda_text/baseline_kernels.h"
#include "embed/families.h"

namespace atunner {
namespace {

struct ElementsCase {
  const char* op;
  std::vector<std::vector<std::vector<int64_t>>> shapes;
  Attributes attributes = {};
};

const ElementsCase kElementsCases[] = {
    {"transpose", {{{7, 13}}, {{1, 1}}, {{2, 64, 48}}}},
    {"transpose", {{{3, 8, 5, 16}}}, {{"axis0", int64_t{1}}, {"axis1", int64_t{2}}}},
    {"pad", {{{7, 13}}, {{1, 1}}, {{16, 64}}}},
    {"pad", {{{7, 16}}}, {{"low", int64_t{8}}, {"high", int64_t{8}}, {"value", 1.5}}},
    {"pad", {{{5, 16}}}, {{"axis", int64_t{0}}, {"low", int64_t{2}}, {"high", int64_t{0}}}},
    {"concat", {{{7, 13}, {7, 3}}, {{1, 1}, {1, 1}}, {{16, 64}, {16, 32}}}},
    {"flip", {{{7, 13}}, {{1, 1}}, {{16, 64}}}},
    {"flip", {{{7, 16}}}, {{"axis", int64_t{0}}}},
    {"repeat_interleave", {{{7, 13}}, {{1, 1}}, {{16, 64}}}},
    {"upsample_nearest", {{{1, 3, 5, 7}}, {{1, 1, 1}}, {{2, 4, 8, 16}}}},
    {"embedding", {{{11, 13}, {7}}, {{1, 1}, {1}}, {{64, 32}, {4, 16}}}},
    {"index_select", {{{11, 13}, {7}}, {{1, 1}, {1}}, {{64, 32}, {16}}}},
    {"index_select", {{{5, 32, 3}, {16}}}, {{"axis", int64_t{1}}}},
    {"gather", {{{11, 13}, {11, 7}}, {{1, 1}, {1, 1}}, {{8, 64}, {8, 32}}}},
    {"max_pool", {{{1, 3, 7, 11}}, {{1, 1, 2, 2}}, {{2, 4, 16, 16}}}},
    {"max_pool",
     {{{1, 2, 7, 11}}, {{2, 2, 16}}, {{1, 2, 4, 5, 6}}},
     {{"size", int64_t{3}}, {"stride", int64_t{2}}, {"padding", int64_t{1}}}},
    {"avg_pool", {{{1, 3, 7, 11}}, {{1, 1, 2, 2}}, {{2, 4, 16, 16}}}},
    {"avg_pool_backward", {{{1, 3, 7, 11}}, {{2, 4, 16, 16}}}},
    {"max_pool_backward", {{{1, 3, 7, 11}}, {{2, 4, 8, 8}}}},
    {"transpose_backward", {{{7, 13}}}},
    {"pad_backward", {{{7, 13}}}},
    {"concat_backward", {{{7, 13}, {7, 3}}}},
};

// The first shape of each in float32, the others in the other types: all are verified in every
// type, at other shapes, by `atunner test --operators`.
TEST_F(GraphKernels, EveryMove) {
  for (const ElementsCase& each : kElementsCases) {
    for (size_t i = 0; i < each.shapes.size(); ++i) {
      const DType dtype = kTaskTypes[i];
      const auto built = graph::Build(*graph::FindInLibrary(each.op),
                                      {dtype, each.shapes[i], each.attributes, false});
      ASSERT_TRUE(built.has_value()) << built.error().ToString();
      Check(SpecOfGraph(*built, {}).value(), "elements", dtype == DType::kFloat32 ? 1 : 0);
    }
  }
  EXPECT_GE(verified_, 72u);
}

TEST_F(GraphKernels, ManyTensorsInOneLaunch) {
  const std::vector<std::vector<int64_t>> shapes = {{7}, {16, 96}, {1}, {3, 5, 7}, {2048}, {7}};
  for (const char* op : {"sgd", "adamw", "clip_grad_norm", "unscale"}) {
    for (DType dtype : kTaskTypes) {
      const auto built = graph::Build(*graph::FindInLibrary(op), {dtype, shapes, {}, false});
      ASSERT_TRUE(built.has_value()) << built.error().ToString();
      Check(SpecOfGraph(*built, {}).value(), "tensors", 3);
    }
  }
}

TEST_F(GraphKernels, TensorsOfSeveralKinds) {
  Check(SpecOfText(R"(
graph kinds
input a: float32[5, 40]
input b: float32[300]
input c: bfloat16[77]
input d: bfloat16[64]
input e: float32[12]
f = abs(a)
g = abs(b)
r = reduce_max(f, axes=[0, 1])
s = reduce_max(g, axes=[0])
m = maximum(r, s)
h = cast(c, float32)
i = cast(d, float32)
t = reduce_mean(h, axes=[0])
u = reduce_mean(i, axes=[0])
n = t - u
v = a / m
w = b / m
x = c * cast(n, bfloat16)
y = d * cast(n, bfloat16)
z = e * n
output v
output w
output x
output y
output z
output m
)"),
        "tensors", 3);
}

TEST_F(GraphKernels, WindowsOfEveryKindShareWhatTheyRead) {
  const auto whole = [](int64_t size, int64_t stride, int64_t padding) {
    return Attributes{{"size", size}, {"stride", stride}, {"padding", padding}};
  };
  const ElementsCase cases[] = {
      {"max_pool",
       {{{2, 3, 16, 16}}, {{1, 2, 7, 11}}, {{2, 2, 48}}, {{1, 2, 4, 6, 8}}},
       whole(3, 2, 1)},
      {"max_pool", {{{2, 3, 16, 16}}, {{1, 2, 9, 12}}}, whole(3, 1, 1)},
      {"max_pool",
       {{{1, 2, 8, 24}}},
       {{"size", int64_t{3}}, {"dilation", int64_t{2}}, {"padding", int64_t{1}}}},
      {"avg_pool",
       {{{2, 3, 16, 16}}, {{2, 5, 96}}, {{1, 2, 4, 8, 8}}},
       {{"size", int64_t{4}}, {"stride", int64_t{4}}}},
  };
  for (const ElementsCase& each : cases) {
    for (DType dtype : kTaskTypes) {
      for (const auto& shapes : each.shapes) {
        const bool open = dtype == DType::kFloat32;
        const auto built = graph::Build(*graph::FindInLibrary(each.op),
                                        {dtype, shapes, each.attributes, open});
        ASSERT_TRUE(built.has_value()) << built.error().ToString();
        Check(SpecOfGraph(*built, {}).value(), "pooling", 1);
      }
    }
  }
  Check(SpecOfText(R"(
graph between_maps
input x: bfloat16[3, 8, 16]
positive = cast(abs(x) + 1, float32)
high = window(positive, axis=1, size=2, stride=2)
windows = window(high, axis=3, size=2, stride=2)
least = reduce_min(windows, axes=[2, 4])
y = cast(log(least), float32)
output y
)"),
        "pooling", 4);
}

TEST_F(GraphKernels, MovesBetweenMapsBecomeOneKernel) {
  Check(SpecOfText(R"(
graph rotary
dim B = 1..9
input x: bfloat16[B, 4, 32]
input angle: float32[4, 16]
wide = cast(x, float32)
low = slice(wide, axis=2, stop=16)
high = slice(wide, axis=2, start=16, stop=32)
minus = -high
turned = concat(minus, low, axis=2)
both = concat(angle, angle, axis=1)
y = cast(wide * cos(both) + turned * sin(both), bfloat16)
split = reshape(low, shape=[B, 4, 4, 4])
z = transpose(split, order=[0, 3, 1, 2])
output y
output z
)"),
        "elements", 6);
}

// More than one block takes rows whose length the items do not divide.
TEST_F(GraphKernels, AThreadsVectorsShareWhatIsCostly) {
  for (const char* name : {"rope", "rope_backward", "interpolate"}) {
    const KernelSpec spec = SpecOf({name, {{3, 5, 8, 64}}, {}}, DType::kBFloat16);
    const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
    EXPECT_EQ(GetInt(schedule->space(), schedule->Default(), "shares"), 1);
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    for (const int64_t items : {2, 4}) {
      const Configuration one = WithValues(
          *schedule, {{"vector", 4}, {"items", items}, {"block", 64}, {"shares", int64_t{1}}});
      CheckConfiguration(spec, *schedule, one, *oracle);
    }
  }
  EXPECT_GT(verified_, 0u);
}

TEST_F(GraphKernels, EveryReductionOverColumns) {
  const std::pair<DType, std::vector<int64_t>> cases[] = {
      {DType::kFloat32, {509, 5}}, {DType::kBFloat16, {2, 1}}, {DType::kFloat16, {3, 67, 64}}};
  for (const char* name :
       {"sum", "mean", "prod", "amax", "amin", "any", "all", "count_nonzero", "sum_of_squares",
        "norm", "var", "std", "logsumexp", "softmax", "log_softmax", "normalize", "argmax"}) {
    for (const auto& [dtype, shape] : cases) {
      const auto axis = static_cast<int64_t>(shape.size()) - 2;
      const auto built = graph::Build(*graph::FindInLibrary(name),
                                      {dtype, {shape}, {{"axis", axis}}, axis > 0});
      ASSERT_TRUE(built.has_value()) << built.error().ToString();
      Check(SpecOfGraph(*built, {}).value(), "columns", dtype == DType::kFloat16 ? 1 : 0);
    }
  }
  EXPECT_GE(verified_, 102u);
}

TEST_F(GraphKernels, ColumnsMayStayInRegistersBetweenPasses) {
  const auto built = graph::Build(*graph::FindInLibrary("log_softmax"),
                                  {DType::kBFloat16, {{3, 64, 64}}, {{"axis", int64_t{1}}}, true});
  const KernelSpec spec = SpecOfGraph(built.value(), {}).value();
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  const auto index = SpaceIndex::Build(schedule->space(), spec.dims).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  Random random(3);
  int held = 0;
  for (int tries = 0; held < 3 && tries < 5000; ++tries) {
    const Configuration one = index.At(index.Draw(random));
    if (GetInt(schedule->space(), one, "hold") != 1) continue;
    SCOPED_TRACE(schedule->space().Describe(one));
    const RenderedKernel kernel = schedule->Render(one).value();
    const CompileOutcome outcome =
        compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    CheckSize(spec, kernel, *outcome.module, spec.dims, *oracle);
    // As many loads as a thread has vectors: those of later passes are gone.
    const int64_t turns = 64 / GetInt(schedule->space(), one, "reduced_threads");
    const std::string& ptx = outcome.module->ptx;
    int64_t loads = 0;
    for (size_t at = 0; (at = ptx.find("ld.global", at)) != std::string::npos; ++at) ++loads;
    EXPECT_LE(loads, turns * std::max<int64_t>(1, GetInt(schedule->space(), one, "vector") / 8));
    ++held;
  }
  EXPECT_EQ(held, 3);
}

TEST_F(GraphKernels, BlocksThatDivideColumnsMeetInOneKernel) {
  struct Case {
    const char* name;
    std::vector<int64_t> shape;
    Attributes attributes;
  };
  const Case cases[] = {{"softmax", {24, 3000}, {}},
                        {"batch_norm", {25, 12, 8, 8}, {}},
                        {"softmax_backward", {24, 3000}, {}}};
  for (const auto& [name, shape, attributes] : cases) {
    const auto built = graph::Build(*graph::FindInLibrary(name),
                                    {DType::kFloat32, {shape}, attributes, false});
    const KernelSpec spec = SpecOfGraph(built.value(), {}).value();
    SCOPED_TRACE(spec.name);
    const auto schedule = kColumnsFamily.Try(Task::Of(spec)).bind(gpu_.profile()).value();
    const auto index = SpaceIndex::Build(schedule->space(), spec.dims).value();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    Random random(5);
    int met = 0;
    for (int tries = 0; met < 3 && tries < 20000; ++tries) {
      const Configuration one = index.At(index.Draw(random));
      if (GetInt(schedule->space(), one, "hold") != 2 ||
          GetInt(schedule->space(), one, "splits") > 8)
        continue;
      SCOPED_TRACE(schedule->space().Describe(one));
      const RenderedKernel kernel = schedule->Render(one).value();
      const CompileOutcome outcome =
          compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
      ASSERT_TRUE(outcome.ok()) << outcome.error << kernel.source.text;
      CheckSize(spec, kernel, *outcome.module, spec.dims, *oracle);
      ++met;
    }
    EXPECT_EQ(met, 3);
  }
}

class OnHopper : public GraphKernels {
 protected:
  OnHopper() : GraphKernels("H200") {}
};

// Few multiprocessors, so that every block has many parts of some strips: places are used again.
TEST_F(OnHopper, BlocksThatShareStripsMeet) {
  DeviceProfile few = gpu_.profile();
  few.sms = 4;
  for (const char* name : {"batch_norm", "instance_norm", "batch_norm_training"}) {
    const auto built = graph::Build(*graph::FindInLibrary(name),
                                    {DType::kBFloat16, {{9, 21, 84, 60}}, {}, false});
    const KernelSpec spec = SpecOfGraph(built.value(), {}).value();
    const auto schedule = MakeTemplate(spec, few).value();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    for (const auto& [splits, rings] : {std::pair<int64_t, int64_t>{2, 1}, {8, 1}, {16, 2}}) {
      const std::vector<std::pair<const char*, int64_t>> values = {
          {"kept_threads", 1}, {"reduced_threads", 64}, {"vector", 4},
          {"splits", splits},  {"unroll", 4},           {"hold", 2},
          {"rings", rings}};
      CheckConfiguration(spec, *schedule, WithValues(*schedule, values), *oracle);
    }
  }
}

// As many columns as rows: what columns share must not be taken for what rows share and asked for
// ahead.
TEST_F(OnHopper, WeightsOfColumnsAreNotThoseOfRows) {
  const KernelSpec spec = SpecOfText(R"(
graph square
input x: bfloat16[1024, 1024]
input w: float32[1024]
input scale: float32[1024, 1]
wide = cast(x, float32)
mean = reduce_mean(wide, axes=[1], keep=true)
y = cast((wide - mean) * w * scale, bfloat16)
output y
)");
  DeviceProfile few = gpu_.profile();
  few.sms = 4;
  const auto schedule = kColumnsFamily.Try(Task::Of(spec)).bind(few).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  const std::vector<std::pair<const char*, int64_t>> values = {
      {"kept_threads", 1}, {"reduced_threads", 64}, {"vector", 2},
      {"splits", 2},       {"unroll", 4},           {"hold", 2},
      {"rings", 1}};
  CheckConfiguration(spec, *schedule, WithValues(*schedule, values), *oracle);
}

TEST_F(GraphKernels, StatisticsOfChannels) {
  for (const char* name : {"batch_norm", "instance_norm", "group_norm"}) {
    for (DType dtype : kTaskTypes) {
      for (const auto& shape : {std::vector<int64_t>{3, 5, 7, 11}, {1, 1, 1}, {4, 8, 16, 8}}) {
        Attributes attributes;
        if (std::string(name) == "group_norm")
          attributes["groups"] = int64_t{shape[1] % 2 == 0 ? 4 : 1};
        const auto built = graph::Build(*graph::FindInLibrary(name), {dtype, {shape}, attributes});
        ASSERT_TRUE(built.has_value()) << built.error().ToString();
        Check(SpecOfGraph(*built, {}).value(), "columns", dtype == DType::kFloat16 ? 2 : 0);
      }
    }
  }
}

TEST_F(GraphKernels, ColumnSchedulesAgree) {
  Check(SpecOfText(R"(
graph several
dim B = 1..5
input x: bfloat16[B, 19, 6, 32]
input dy: float32[B, 19, 6, 32]
input w: float32[6, 1]
wide = cast(x, float32) * w
mean = reduce_mean(wide, axes=[1, 2], keep=true)
bias = reduce_sum(dy, axes=[1, 2])
centred = wide - mean
square = centred * centred
var = reduce_mean(square, axes=[1, 2], keep=true)
low = reduce_min(centred, axes=[1, 2])
y = cast(centred * rsqrt(var + 1e-5) + cast(index(-1) + index(-3), float32), bfloat16)
output y
output bias
output var
output low
)"),
        "columns", 10);
  Check(SpecOfText(R"(
graph channels
input x: float16[9, 5, 64]
wide = cast(x, float32)
turned = reverse(wide, axis=2)
both = turned * wide
total = reduce_sum(both, axes=[0, 2])
top = reduce_max(wide, axes=[0, 2], keep=true)
y = wide - top
output y
output total
)"),
        "columns", 10);
}

TEST_F(GraphKernels, EveryScan) {
  const std::pair<DType, std::vector<int64_t>> cases[] = {
      {DType::kFloat32, {5, 509}}, {DType::kFloat16, {1, 1}}, {DType::kBFloat16, {3, 1024}}};
  for (const char* name : {"cumsum", "cumprod", "cummax", "cummin", "masked_cumsum"}) {
    for (const auto& [dtype, shape] : cases) {
      for (const bool backwards : {false, true}) {
        Attributes attributes;
        if (std::string(name) != "masked_cumsum")
          attributes = {{"exclusive", backwards}, {"reverse", backwards}};
        const auto built = graph::Build(*graph::FindInLibrary(name),
                                        {dtype, {shape}, attributes, true});
        ASSERT_TRUE(built.has_value()) << built.error().ToString();
        Check(SpecOfGraph(*built, {}).value(), "scan", dtype == DType::kFloat32 ? 1 : 0);
      }
    }
  }
  EXPECT_GE(verified_, 80u);
}

TEST_F(GraphKernels, ScansAlongOtherAxesAndOfIntegers) {
  for (const auto& shape : {std::vector<int64_t>{67, 5}, {3, 40, 64}, {2, 1, 1}}) {
    for (const bool backwards : {false, true}) {
      const auto axis = static_cast<int64_t>(shape.size()) - 2;
      const Attributes attributes = {
          {"axis", axis}, {"exclusive", backwards}, {"reverse", backwards}};
      for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt32}) {
        const auto built = graph::Build(*graph::FindInLibrary("cumsum"),
                                        {dtype, {shape}, attributes, false});
        Check(SpecOfGraph(*built, {}).value(), "scan", 4);
      }
    }
  }
}

TEST_F(GraphKernels, TransposesInEveryTypeAndShape) {
  const std::vector<std::pair<std::vector<int64_t>, std::pair<int64_t, int64_t>>> cases = {
      {{37, 41}, {0, 1}},    {{2, 3}, {0, 1}},        {{64, 96}, {0, 1}},
      {{3, 40, 24}, {1, 2}}, {{3, 8, 5, 16}, {1, 3}}, {{6, 5, 8}, {0, 2}}};
  for (const auto& [shape, axes] : cases) {
    for (DType dtype : kTaskTypes) {
      const Attributes attributes = {{"axis0", axes.first}, {"axis1", axes.second}};
      for (const bool open : {false, true}) {
        const auto built = graph::Build(*graph::FindInLibrary("transpose"),
                                        {dtype, {shape}, attributes, open});
        ASSERT_TRUE(built.has_value()) << built.error().ToString();
        Check(SpecOfGraph(*built, {}).value(), "transpose", 2);
      }
    }
  }
  Check(SpecOfText(R"(
graph mapped
input x: bfloat16[4, 33, 64]
double = cast(x, float32) * 2
t = transpose(double, order=[2, 0, 1])
y = t + 1
output y
)"),
        "transpose", 6);
}

constexpr const char* kNarrowProbe = R"(
template <class T> DEVICE void probe(float* out) {
  const unsigned short bits = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = to_real(*(const T*)&bits);
  float* mine = out + bits * 9;
  mine[0] = x, mine[1] = exp_narrow(x), mine[2] = sigmoid_narrow(x), mine[3] = tanh_narrow(x), mine[4] = erf_narrow(x);
  mine[5] = log_narrow(x), mine[6] = log1p_narrow(x), mine[7] = expm1_narrow(x), mine[8] = quotient_narrow(3, x);
}
extern "C" __global__ void halves(float* out) { probe<__half>(out); }
extern "C" __global__ void brains(float* out) { probe<__nv_bfloat16>(out); }
)";

TEST_F(GraphKernels, ShortFunctionsAreExactEnoughForEvery16BitNumber) {
  const SourceUnit source{.text = graph::KernelPrelude() + std::string(embed::kWordsCuh) +
                                  std::string(embed::kNarrowCuh) + kNarrowProbe};
  const auto outcome = compiler_->Compile({source, {"halves", "brains"}, gpu_.arch()}).value();
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  const auto module = gpu_.Load(*outcome.module).value();
  std::vector<float> values(9 * 65536);
  const auto out = gpu_.Allocate(values.size() * sizeof(float)).value();
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"exp", [](double v) { return std::exp(v); }},
      {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"tanh", [](double v) { return std::tanh(v); }},
      {"erf", [](double v) { return std::erf(v); }},
      {"log", [](double v) { return std::log(v); }},
      {"log1p", [](double v) { return std::log1p(v); }},
      {"expm1", [](double v) { return std::expm1(v); }},
      {"quotient", [](double v) { return 3 / v; }}};
  for (const char* entry : {"halves", "brains"}) {
    const KernelArg args[] = {KernelArg::Address(out->address())};
    ASSERT_TRUE(gpu_.Launch(*module, entry, {{256, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0}, args, {})
                    .value()
                    .completed());
    ASSERT_TRUE(gpu_.CopyOut(std::as_writable_bytes(std::span(values)), out->address()));
    for (size_t f = 0; f < std::size(functions); ++f) {
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < 65536; ++i) {
        const float x = values[9 * i];
        const double exact = functions[f].second(x);
        const float got = values[9 * i + 1 + f];
        if (std::isnan(exact)) {
          EXPECT_TRUE(std::isnan(got)) << functions[f].first << " of " << x;
        } else if (!std::isfinite(exact) || std::abs(exact) > 3e38) {
          EXPECT_GT(std::abs(got), 1e38) << functions[f].first << " of " << x;
          EXPECT_EQ(std::signbit(got), std::signbit(exact)) << functions[f].first << " of " << x;
        } else {
          // Below float32's normal numbers the special function unit gives zero.
          const double error = std::abs(got - exact) / std::max(std::abs(exact), 1.2e-38);
          if (!(error <= worst) && std::abs(exact) > 1.2e-38) worst = error, where = x;
        }
      }
      RecordProperty(std::string(entry) + "_" + functions[f].first,
                     std::to_string(std::log2(worst)));
      EXPECT_LT(worst, 0x1p-14) << entry << " " << functions[f].first << " of " << where;
    }
  }
}

}  // namespace
}  // namespace atunner
