// Attention beyond the forward pass on the virtual GPU: decoding from pages, and gradients.
#include "atunner/codegen/graph_kernels_test.h"

namespace atunner {
namespace {

class Decoding : public GraphKernels {
 protected:
  /// Sequences, heads, dim, pages, keys of a page, key heads, pages of a sequence.
  static KernelSpec Task(std::array<int64_t, 7> n, DType dtype, double scale = 0) {
    return SpecOf({"attention_paged", {{n[0], n[1], n[2]}, {n[3], n[4], n[5], n[2]}, {n[0], n[6]}}, {{"scale", scale}}},
                  dtype);
  }
};

TEST_F(Decoding, GroupsOfHeadsAndPagesOfAnySize) {
  Check(Task({3, 8, 64, 29, 16, 2, 9}, DType::kBFloat16), "attention_paged", 2);
  Check(Task({2, 3, 128, 7, 5, 3, 3}, DType::kFloat16), "attention_paged", 1);
  Check(Task({2, 20, 40, 11, 7, 1, 5}, DType::kFloat16, -0.3), "attention_paged", 2);
  Check(Task({1, 4, 256, 16, 32, 1, 5}, DType::kBFloat16), "attention_paged", 1);
}

TEST_F(Decoding, PartsAreJoined) {
  const KernelSpec spec = Task({3, 8, 64, 40, 16, 2, 40}, DType::kBFloat16);
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  for (const auto& [parts, warps, octets] : {std::array{5, 1, 1}, std::array{3, 4, 1}, std::array{7, 2, 1}}) {
    Configuration one = WithValues(*schedule, {{"parts", parts}, {"warps", warps}, {"octets", octets}});
    CheckConfiguration(spec, *schedule, one, *oracle);
  }
}

class Gradients : public GraphKernels {
 protected:
  Gradients() : GraphKernels("H200") {}
  static KernelSpec Task(int64_t heads, int64_t key_heads, int64_t length, int64_t dim, DType dtype, bool causal,
                         double scale = 0) {
    return SpecOf({"attention_gqa_backward",
                   {{1, heads, length, dim}, {1, key_heads, length, dim}},
                   {{"causal", causal}, {"scale", scale}}},
                  dtype);
  }
};

TEST_F(Gradients, OfHeadsOfEverySize) {
  Check(Task(2, 2, 130, 64, DType::kBFloat16, false), "attention_backward");
  Check(Task(1, 1, 100, 128, DType::kFloat16, false), "attention_backward");
  Check(Task(1, 1, 70, 256, DType::kBFloat16, false), "attention_backward");
  Check(Task(1, 1, 77, 40, DType::kFloat16, false, -0.2), "attention_backward");
}

TEST_F(Gradients, UnderACausalMask) {
  Check(Task(1, 1, 133, 64, DType::kFloat16, true), "attention_backward", 1);
  Check(Task(2, 2, 129, 128, DType::kBFloat16, true), "attention_backward");
  Check(Task(1, 1, 130, 256, DType::kFloat16, true), "attention_backward");
}

TEST_F(Gradients, OfKeysThatHeadsShare) {
  Check(Task(4, 2, 90, 64, DType::kBFloat16, true), "attention_backward");
  Check(Task(3, 1, 70, 128, DType::kFloat16, false), "attention_backward");
}

TEST_F(Gradients, WhereASingleKeyHasAllWeightNothingIsLeftOver) {
  inputs_ = InputFamily::kLargeLogits;
  Check(Task(1, 1, 70, 64, DType::kFloat16, true), "attention_backward");
  Check(Task(1, 1, 150, 64, DType::kFloat16, false), "attention_backward");
}

TEST_F(Gradients, OtherGraphsOfTheNameAreNotMatched) {
  KernelSpec spec = Task(1, 1, 64, 64, DType::kBFloat16, false);
  EXPECT_TRUE(AttentionBackwardFamily().Match(spec));
  spec.oracle.graph = Task(1, 1, 64, 64, DType::kBFloat16, true).oracle.graph;
  EXPECT_FALSE(AttentionBackwardFamily().Match(spec));
}

}  // namespace
}  // namespace atunner
