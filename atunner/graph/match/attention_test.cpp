// Attention is told from what is computed, not from how it is written.
#include "atunner/graph/match/attention.h"

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/rewrite/rewrite.h"

namespace atunner::graph {
namespace {

const char* const kInputs =
    "graph g\ninput q: float32[2, 3, 8, 4]\ninput k: float32[2, 3, 8, 4]\ninput v: float32[2, 3, "
    "8, 4]\n";
const char* const kScores = "s = contract(q, k, equation=\"bhsd,bhtd->bhst\")\n";
const char* const kMixed =
    "y = contract(share, v, equation=\"bhst,bhtd->bhsd\", sparse=true)\noutput y\n";
const char* const kSoftmax =
    "top = reduce_max(x, axes=[3], keep=true)\ngrown = exp(x - top)\ntotal = reduce_sum(grown, "
    "axes=[3], keep=true)\n"
    "share = grown / total\n";

std::optional<AttentionForm> FormOf(const std::string& text) {
  return AttentionOf(FuseMaps(WithCanonicalMatmuls(MustParse(text))));
}

TEST(Attention, IsFoundInItsPlainForm) {
  const auto form = FormOf(std::string(kInputs) + kScores + "x = s * 0.5\n" + kSoftmax + kMixed);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->q + form->k + form->v + form->y, "qkvy");
  EXPECT_EQ((std::vector{form->batch.factor(), form->heads, form->queries, form->keys, form->dim}),
            (std::vector<int64_t>{2, 3, 8, 8, 4}));
  EXPECT_DOUBLE_EQ(form->scale, 0.5);
  EXPECT_FALSE(form->causal);
  EXPECT_EQ(form->mask, "");
}

TEST(Attention, QueryHeadsMayShareKeyHeads) {
  for (const int64_t sharing : {1, 4}) {
    std::string text = "graph g\ninput q: float32[2, 3, " + std::to_string(sharing) +
                       ", 8, 4]\ninput k: float32[2, 3, 8, 4]\ninput v: float32[2, 3, 8, 4]\n"
                       "s = contract(q, k, equation=\"bhgsd,bhtd->bhgst\")\n"
                       "x = s * 0.5\ntop = reduce_max(x, axes=[4], keep=true)\n"
                       "held = detach(top)\n"
                       "grown = select(x == (-inf), 0, exp(x - held))\n"
                       "total = reduce_sum(grown, axes=[4], keep=true)\n"
                       "m = contract(grown, v, equation=\"bhgst,bhtd->bhgsd\", sparse=true)\n"
                       "y = m / total\noutput y\n";
    const auto form = FormOf(text);
    ASSERT_TRUE(form) << text;
    EXPECT_EQ(form->heads, 3 * sharing);
    EXPECT_EQ(form->sharing, sharing);
  }
}

TEST(Attention, ZerosOfQueriesThatSeeNoKeyAreSomethingElse) {
  const std::string safe =
      "top = reduce_max(x, axes=[3], keep=true)\ngrown = exp(x - top)\n"
      "total = reduce_sum(grown, axes=[3], keep=true)\n"
      "share = select(top == (-inf), 0, grown / total)\n";
  EXPECT_FALSE(FormOf(std::string(kInputs) + kScores + "x = s * 0.5\n" + safe + kMixed));
}

TEST(Attention, OpenAxesAreOfTheBatch) {
  std::string text = std::string(kInputs) + kScores + "x = s * 0.5\n" + kSoftmax + kMixed;
  for (size_t at = 0; (at = text.find("[2, ", at)) != text.npos;) text.replace(at, 4, "[2*n, ");
  text.insert(text.find("input"), "dim n = 1..9\n");
  const auto form = FormOf(text);
  ASSERT_TRUE(form) << text;
  EXPECT_EQ(form->batch.ToString(), "2*n");
  EXPECT_EQ(form->heads, 3);
}

TEST(Attention, IsFoundHoweverMasksAndScalesAreWritten) {
  const std::string causal[] = {
      "x = select(index(-1) <= index(-2), s / 4, -inf)\n",
      "n: bool[8, 8] = index(-1) > index(-2)\nx = select(n, -1e38, s) * 0.25\n",
      "scaled = s * 0.25\nx = scaled + select(index(-2) >= index(-1), cast(0, float32), -inf)\n"};
  for (const std::string& scores : causal) {
    const auto form = FormOf(std::string(kInputs) + kScores + scores + kSoftmax + kMixed);
    ASSERT_TRUE(form) << scores;
    EXPECT_DOUBLE_EQ(form->scale, 0.25) << scores;
    EXPECT_TRUE(form->causal) << scores;
  }
  const auto added = FormOf(std::string(kInputs) + "input m: float32[8, 8]\n" + kScores +
                            "x = 0.25 * s + m\n" + kSoftmax + kMixed);
  ASSERT_TRUE(added);
  EXPECT_EQ(added->mask, "m");
}

TEST(Attention, IsFoundWhereWeightsAreDividedAfterwards) {
  const auto form = FormOf(std::string(kInputs) + kScores + R"(x = s * 0.5
top = reduce_max(x, axes=[3], keep=true)
share = exp(x - top)
total = reduce_sum(share, axes=[3], keep=true)
mixed = contract(share, v, equation="bhst,bhtd->bhsd")
y = mixed / total
output y
)");
  EXPECT_TRUE(form);
}

TEST(Attention, IsNothingElse) {
  const auto with = [&](const std::string& scores, const std::string& softmax) {
    return FormOf(std::string(kInputs) + kScores + scores + softmax + kMixed).has_value();
  };
  EXPECT_FALSE(with("x = s * s\n", kSoftmax));
  EXPECT_FALSE(with("x = select(index(-1) < index(-2) | index(-1) == 0, s, -inf)\n", kSoftmax));
  EXPECT_FALSE(with("x = select(index(-1) <= index(-2) + 1, s, -inf)\n", kSoftmax));
  EXPECT_FALSE(with("x = tanh(s)\n", kSoftmax));
  // Zero times NaN counts where a contraction is not sparse.
  const std::string dense = "y = contract(share, v, equation=\"bhst,bhtd->bhsd\")\noutput y\n";
  EXPECT_TRUE(FormOf(std::string(kInputs) + kScores + "x = s * 0.5\n" + kSoftmax + dense));
  EXPECT_FALSE(FormOf(std::string(kInputs) + kScores +
                      "x = select(index(-1) <= index(-2), s, -inf)\n" + kSoftmax + dense));
  const std::string power =
      "top = reduce_max(x, axes=[3], keep=true)\ngrown = exp2(x - top)\n"
      "total = reduce_sum(grown, axes=[3], keep=true)\nshare = grown / total\n";
  EXPECT_FALSE(with("x = s * 0.5\n", power));
  const std::string across =
      "top = reduce_max(x, axes=[2], keep=true)\ngrown = exp(x - top)\n"
      "total = reduce_sum(grown, axes=[2], keep=true)\nshare = grown / total\n";
  EXPECT_FALSE(with("x = s * 0.5\n", across));
}

}  // namespace
}  // namespace atunner::graph
