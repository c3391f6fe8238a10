// Passes that move transposes: values stay, and transposes are where they should be.
#include <algorithm>
#include <string>
#include <vector>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/rewrite/maps_before_reshapes.h"
#include "atunner/graph/rewrite/maps_before_transposes.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewrite/transposes_into_products.h"

namespace atunner::graph {
namespace {

void ExpectSame(const ValidGraph& before, const ValidGraph& after) {
  const std::vector<Tensor> inputs = RandomInputs(before, 3);
  const auto want = Evaluate(before, inputs).value(), got = Evaluate(after, inputs).value();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ExpectNear(got[i], want[i].Reals());
}

size_t Transposes(const ValidGraph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [](const Node& n) { return n.As<Transpose>(); }));
}

ValidGraph Convolution(const std::string& tail, const std::string& images = "2") {
  return MustParse("graph g\ninput x: float32[" + images + R"(, 3, 5, 6]
input w: float32[4, 3, 3, 3]
input bias: float32[4]
input scale: float32[4, 1, 1]
input z: float32[)" +
                   images + R"(, 4, 3, 4]
rows = window(x, axis=2, size=3)
taps = window(rows, axis=4, size=3)
s = contract(taps, w, equation="nchrws,ocrs->nohw")
)" + tail + "output y\n");
}

const Node& Producer(const ValidGraph& graph) { return graph.node(graph.outputs()[0].node); }

TEST(WithMapsBeforeTransposes, PutsWhatFollowsAConvolutionBeforeTheTranspose) {
  for (const char* tail : {"b = reshape(bias, shape=[4, 1, 1])\ny = exp(s * scale + b)\n",
                           "y = s * scale + z\n", "y = s + 1\n"}) {
    for (const char* images : {"1", "2"}) {
      SCOPED_TRACE(std::string(tail) + images);
      const ValidGraph given = FuseMaps(WithCanonicalMatmuls(Convolution(tail, images)));
      ASSERT_TRUE(Producer(given).As<Map>());
      const ValidGraph made = WithMapsBeforeTransposes(given);
      EXPECT_FALSE(Producer(made).As<Map>());
      ExpectSame(given, made);
    }
  }
}

TEST(WithMapsBeforeTransposes, LeavesMapsThatReadPlacesAndSharedResults) {
  for (const char* tail :
       {"y = s + cast(index(-1), float32)\n", "t = exp(s)\nu = s * 2\ny = t + u * s\n"}) {
    SCOPED_TRACE(tail);
    const ValidGraph given = WithCanonicalMatmuls(Convolution(tail));
    EXPECT_EQ(WithMapsBeforeTransposes(given).ContentDigest(), given.ContentDigest());
  }
}

TEST(WithMapsBeforeTransposes, LeavesMatrixProducts) {
  const ValidGraph given = MustParse(R"(
graph g
input a: float32[3, 4]
input b: float32[4, 5]
s = contract(a, b, equation="mk,kn->mn")
t = transpose(s, order=[1, 0])
y = exp(t)
output y
)");
  EXPECT_TRUE(Producer(WithMapsBeforeTransposes(given)).As<Map>());
}

ValidGraph Layer(const std::string& tail) {
  return MustParse(
      "graph g\ninput x: float32[6, 5]\ninput w: float32[8, 5]\n"
      "input bias: float32[8]\ninput z: float32[2, 3, 8]\n"
      "p = contract(x, w, equation=\"mk,nk->mn\")\nb = p + bias\n" +
      tail + "output y\n");
}

TEST(WithMapsBeforeReshapes, PutsWhatFollowsAProductBeforeTheReshape) {
  for (const char* tail : {"r = reshape(b, shape=[2, 3, 8])\ny = exp(r)\n",
                           "r = reshape(b, shape=[1, 6, 8])\ny = exp(r) * bias\n",
                           "input e: float32[6, 1, 1]\ninput f: float32[1, 6, 1, 8]\n"
                           "r = reshape(b, shape=[1, 6, 1, 8])\ny = r * e + f\n",
                           "c = contract(x, w, equation=\"mk,nk->mn\")\n"
                           "s = reshape(c, shape=[2, 3, 8])\nr = reshape(b, shape=[2, 3, 8])\n"
                           "y = exp(r) * s\n"}) {
    SCOPED_TRACE(tail);
    const ValidGraph made = WithMapsBeforeReshapes(Layer(tail));
    EXPECT_TRUE(Producer(made).As<Reshape>());
    ExpectSame(Layer(tail), made);
  }
}

TEST(WithMapsBeforeReshapes, LeavesMapsOfOtherAxesAndSharedResults) {
  for (const char* tail : {"r = reshape(b, shape=[2, 3, 8])\ny = exp(r) + z\n",
                           "r = reshape(b, shape=[2, 3, 8])\ny = r * cast(index(-1), float32)\n",
                           "r = reshape(b, shape=[6, 4, 2])\ny = exp(r)\n",
                           "r = reshape(b, shape=[2, 3, 8])\nt = exp(r)\ny = t * r\n"}) {
    SCOPED_TRACE(tail);
    EXPECT_TRUE(Producer(WithMapsBeforeReshapes(Layer(tail))).As<Map>());
  }
}

ValidGraph Product(const std::string& b, const std::string& letters) {
  return MustParse("graph g\ninput q: float32[6, 5, 4]\ninput k: float32[2, 3, 7, 4]\n" + b +
                   "y = contract(q, r, equation=\"bmk," + letters + "->bmn\")\noutput y\n");
}

TEST(WithTransposesInProducts, ReadsTheOperandAsItLies) {
  for (const char* operand :
       {"t = transpose(k, order=[0, 1, 3, 2])\nr = reshape(t, shape=[6, 4, 7])\n",
        "u = reshape(k, shape=[6, 7, 4])\nr = transpose(u, order=[0, 2, 1])\n"}) {
    SCOPED_TRACE(operand);
    const ValidGraph given = Product(operand, "bkn");
    const ValidGraph made = Simplify(WithTransposesInProducts(given));
    EXPECT_EQ(Transposes(made), 0u);
    ExpectSame(given, made);
  }
}

TEST(WithTransposesInProducts, LeavesAxesThatAreMergedFromApart) {
  const ValidGraph given = Product(
      "t = transpose(k, order=[1, 0, 2, 3])\nr = reshape(t, shape=[6, 7, 4])\n", "bnk");
  const ValidGraph made = Simplify(WithTransposesInProducts(given));
  EXPECT_EQ(Transposes(made), 1u);
  ExpectSame(given, made);
}

/// Attention is recognised by products whose heads come first.
TEST(WithTransposesInProducts, LeavesHeadsInFront) {
  const ValidGraph given = MustParse(R"(
graph g
input q_rows: float32[1, 6, 2, 4]
input k_rows: float32[1, 6, 2, 4]
q = transpose(q_rows, order=[0, 2, 1, 3])
k = transpose(k_rows, order=[0, 2, 1, 3])
y = contract(q, k, equation="bhsd,bhtd->bhst")
output y
)");
  const ValidGraph made = Simplify(WithTransposesInProducts(given));
  EXPECT_EQ(Transposes(made), 2u);
  ExpectSame(given, made);
}

TEST(WithTransposesInProducts, LeavesReshapesThatSplitAnAxis) {
  const ValidGraph given = MustParse(R"(
graph g
input q: float32[2, 3, 4]
input k: float32[12, 5]
t = transpose(k, order=[1, 0])
r = reshape(t, shape=[5, 3, 4])
y = contract(q, r, equation="bck,nck->bcn")
output y
)");
  const ValidGraph made = WithTransposesInProducts(given);
  ExpectSame(given, made);
}

}  // namespace
}  // namespace atunner::graph
