// Decisions that depend on computed values. Correct kernels must pass on every seed, however they
// round; kernels that decide wrongly on none.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

class DataDependentDecisionsTest : public VirtualGpuTest {
 protected:
  static KernelSpec TaskOf(const std::string& graph) {
    return SpecOfGraph(graph::Parse("graph g\n" + graph, "test.atg").value(), {}).value();
  }

  void Passes(const KernelSpec& spec, int rows, const std::string& body) {
    EXPECT_THAT(Refusals(spec, KernelOfRows(spec, rows, body), kManySeeds), testing::IsEmpty())
        << body;
  }
  void Fails(const KernelSpec& spec, int rows, const std::string& body) {
    EXPECT_EQ(Refusals(spec, KernelOfRows(spec, rows, body), kSomeSeeds).size(), kSomeSeeds)
        << body;
  }

  static constexpr uint64_t kManySeeds = 20;
  static constexpr uint64_t kSomeSeeds = 3;
};

/// Softmax of scores and the indices of the largest, with another order of summation and another
/// exponential than the baseline's.
std::string Router(const std::string& choose) {
  return "  float p[16], z = 0, most = -1e30f;\n"
         "  for (int e = 0; e < 16; ++e) {\n    float s = 0;\n"
         "    for (int i = 24; i-- > 0;) s += __bfloat162float(x[row * 24 + i]) * "
         "__bfloat162float(w[e * 24 + i]);\n"
         "    p[e] = s;\n    most = fmaxf(most, s);\n  }\n"
         "  for (int e = 16; e-- > 0;) z += p[e] = exp2f((p[e] - most) * 1.44269504f);\n"
         "  for (int e = 0; e < 16; ++e) p[e] *= 1 / z;\n"
         "  int best[4];\n  unsigned taken = 0;\n"
         "  for (int k = 0; k < 4; ++k) {\n    int at = -1;\n"
         "    for (int e = 0; e < 16; ++e)\n      if (!(taken >> e & 1) && (at < 0 || p[e] > "
         "p[at])) at = e;\n"
         "    taken |= 1u << at;\n    best[k] = at;\n  }\n" +
         choose +
         "  for (int k = 0; k < 4; ++k) { top[row * 4 + k] = best[k]; gate[row * 4 + k] = "
         "p[best[k]]; }\n";
}

TEST_F(DataDependentDecisionsTest, IndicesOfProbabilities) {
  const KernelSpec spec = TaskOf(R"(
input x: bfloat16[24, 24]
input w: bfloat16[16, 24]
l = contract(x, w, equation="tk,ek->te", as=float32)
m = reduce_max(l, axes=[-1], keep=true)
e = exp(l - m)
z = reduce_sum(e, axes=[-1], keep=true)
p = e / z
top = sort(p, axis=-1, descending=true, count=4)
gate = gather(p, top, axis=1, batch=1)
output top
output gate
)");
  Passes(spec, 24, Router(""));
  for (const char* wrong :
       {"  best[3] = best[2];\n", "  { int t = best[0]; best[0] = best[1]; best[1] = t; }\n",
        "  if (row == 23) return;\n", "  for (int k = 0; k < 4; ++k) best[k] = k;\n",
        "  if (row == 21) best[1] = best[0];\n",
        "  if (row > 21) { int t = best[3]; best[3] = best[2]; best[2] = t; }\n"})
    Fails(spec, 24, Router(wrong));
}

/// A row quantised by its largest element, with a multiplication by the reciprocal instead of a
/// division.
std::string Quantised(const std::string& value, const char* wrong = "") {
  return "  float most = 0;\n  for (int i = 0; i < 128; ++i) most = fmaxf(most, fabsf(x[row * 128 "
         "+ i]));\n"
         "  const float scale = most * (1 / 127.f);\n  for (int i = 0; i < 128; ++i) {\n"
         "    const float v = x[row * 128 + i] / scale;\n"
         "    float q = " +
         value + ";\n    " + wrong + "\n    y[row * 128 + i] = (signed char)q;\n  }\n";
}

TEST_F(DataDependentDecisionsTest, QuotientsRoundedToIntegers) {
  const KernelSpec spec = TaskOf(R"(
input x: float32[48, 128]
a = abs(x)
m = reduce_max(a, axes=[1], keep=true)
scale = m / 127
y = cast(round(x / scale), int8)
output y
)");
  Passes(spec, 48, Quantised("rintf(v)"));
  Fails(spec, 48, Quantised("truncf(v)"));
  Fails(spec, 48, Quantised("floorf(v)"));
  Fails(spec, 48, Quantised("rintf(v) + (i == 77 && row == 30)"));
  Fails(spec, 48, Quantised("rintf(__bfloat162float(__float2bfloat16(v)))"));
  Fails(spec, 48, Quantised("rintf(v)", "if (row == 47 && i > 120) q = 0;"));
}

/// Rows of a table selected by the largest computed score, and how often each row is selected.
std::string Picked(const std::string& wrong) {
  return "  int best = 0;\n  float most = -1e30f;\n  for (int e = 0; e < 16; ++e) {\n    float s = "
         "0;\n"
         "    for (int i = 24; i-- > 0;) s += x[row * 24 + i] * w[e * 24 + i];\n"
         "    if (s > most) { most = s; best = e; }\n  }\n" +
         wrong + "  for (int i = 0; i < 20; ++i) y[row * 20 + i] = t[best * 20 + i];\n";
}

TEST_F(DataDependentDecisionsTest, RowsSelectedByComputedScores) {
  const KernelSpec spec = TaskOf(R"(
input x: float32[40, 24]
input w: float32[16, 24]
input t: float32[16, 20]
l = contract(x, w, equation="tk,ek->te")
i = reduce_argmax(l, axes=[1])
y = gather(t, i, axis=0)
output y
)");
  Passes(spec, 40, Picked(""));
  for (const char* wrong :
       {"  best = 0;\n", "  best ^= 1;\n", "  if (row == 39) best = (best + 1) % 16;\n"})
    Fails(spec, 40, Picked(wrong));
}

/// Elements larger than their row's mean, and how many there are per row.
std::string Larger(const std::string& limit, const std::string& columns) {
  return "  float s = 0;\n  for (int i = 64; i-- > 0;) s += a[row * 64 + i];\n  const float mean = "
         "s * (1 / 64.f);\n"
         "  long long n = 0;\n  for (int i = 0; i < " +
         columns + "; ++i) {\n    const float v = a[row * 64 + i];\n    const bool larger = v > " +
         limit +
         ";\n    n += larger;\n    y[row * 64 + i] = larger ? v * mean : -v;\n  }\n  count[row] = "
         "n;\n";
}

TEST_F(DataDependentDecisionsTest, ComparisonsWithMeans) {
  const KernelSpec spec = TaskOf(R"(
input a: float32[24, 64]
m = reduce_mean(a, axes=[1], keep=true)
c = a > m
y = select(c, a * m, -a)
w = cast(c, int64)
count = reduce_sum(w, axes=[1])
output y
output count
)");
  Passes(spec, 24, Larger("mean", "64"));
  for (const auto& [limit, columns] : std::vector<std::pair<std::string, std::string>>{
           {"0", "64"}, {"mean + 0.01f", "64"}, {"mean", "63"}})
    Fails(spec, 24, Larger(limit, columns));
}

}  // namespace
}  // namespace atunner
