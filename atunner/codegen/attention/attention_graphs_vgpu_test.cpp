// Attention as graphs on the virtual GPU: masks, windows and keys that heads share, decoding from
// pages, and gradients.
#include <bit>
#include <limits>

#include "atunner/codegen/tests/graph_kernels_test.h"

namespace atunner {
namespace {

class Decoding : public GraphKernels {
 protected:
  /// Sequences, heads, dim, pages, keys of a page, key heads, pages of a sequence.
  static KernelSpec Task(std::array<int64_t, 7> n, DType dtype, double scale = 0) {
    return SpecOf({"attention_paged",
                   {{n[0], n[1], n[2]}, {n[3], n[4], n[5], n[2]}, {n[0], n[6]}},
                   {{"scale", scale}}},
                  dtype);
  }
};

TEST_F(Decoding, GroupsOfHeadsAndPagesOfAnySize) {
  Check(Task({3, 8, 64, 29, 16, 2, 9}, DType::kBFloat16), "attention_paged", 2);
  Check(Task({2, 3, 128, 7, 5, 3, 3}, DType::kFloat16), "attention_paged", 1);
  Check(Task({2, 20, 40, 11, 7, 1, 5}, DType::kFloat16, -0.3), "attention_paged", 2);
  Check(Task({1, 4, 256, 16, 32, 1, 5}, DType::kBFloat16), "attention_paged", 1);
}

TEST_F(Decoding, SharesOfAnySizeAreJoined) {
  launches_ = 2;
  const KernelSpec spec = Task({7, 8, 64, 40, 16, 2, 128}, DType::kBFloat16);
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  for (const auto& [shares, warps, passing] :
       {std::array{1, 4, 0}, std::array{2, 4, 1}, std::array{1, 8, 1}}) {
    const Configuration one = WithValues(
        *schedule, {{"shares", shares}, {"warps", warps}, {"passing", passing}});
    CheckConfiguration(spec, *schedule, one, *oracle);
  }
}

/// One of the library's operators: {batch, heads, queries, dim}, {batch, key heads, keys, dim}.
class Forward : public GraphKernels {
 protected:
  explicit Forward(const char* profile = "H200") : GraphKernels(profile) {}
  void CheckAll(DType dtype, int64_t dim, size_t drawn = 0) {
    const auto check = [&](const char* name, std::array<int64_t, 5> n, Attributes attributes) {
      Check(
          SpecOf({name, {{n[0], n[1], n[3], dim}, {n[0], n[2], n[4], dim}}, std::move(attributes)},
                 dtype),
          "attention", drawn);
    };
    const auto whole = [](int64_t value) { return Value(value); };
    check("attention_gqa", {2, 4, 2, 67, 131}, {{"causal", true}});
    check("attention_gqa", {1, 3, 1, 131, 149}, {{"causal", true}, {"window", whole(29)}});
    check("attention_gqa", {1, 2, 2, 203, 97}, {{"window", whole(61)}, {"scale", -0.2}});
    check("attention_masked", {2, 2, 1, 71, 101}, {{"per_sequence", true}, {"scale", -0.3}});
    check("attention_masked", {2, 2, 2, 67, 136}, {});
    check("attention_varlen", {3, 2, 1, 37, 197}, {});
  }
  /// Masks with keys that count nothing, with rows of equal least numbers, and with a row that sees
  /// no key.
  void PutInto(const TaskBuffers& buffers) override {
    const auto* mask = buffers.Find("mask");
    if (mask == nullptr || !struck_) return;
    const auto columns = static_cast<size_t>(mask->shape.extents[2]);
    const bool wide = mask->spec->dtype == DType::kFloat32;
    std::vector<float> values(mask->shape.elements);
    std::vector<uint16_t> upper;  // as bfloat16
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t row = i / columns, column = i % columns;
      const bool least = row % 5 == 1 || column > row;
      values[i] = row % 5 == 3 && column > 40 ? -INFINITY
                  : least                     ? -std::numeric_limits<float>::max()
                                              : 0.5F;
      if (row == 8) values[i] = -INFINITY;
      upper.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16));
    }
    EXPECT_TRUE(gpu_.CopyIn(
        mask->address, wide ? std::as_bytes(std::span(values)) : std::as_bytes(std::span(upper))));
  }
  bool struck_ = false;
};
class ForwardOnAmpere : public Forward {
 protected:
  ForwardOnAmpere() : Forward("A100") {}
};

TEST_F(Forward, ByTensorMaps) {
  CheckAll(DType::kBFloat16, 64);
  CheckAll(DType::kFloat16, 40);
}
TEST_F(Forward, OfSeveralTilesInEveryOrder) {
  const KernelSpec spec = SpecOf({"attention_gqa",
                                  {{1, 2, 391, 64}, {1, 1, 401, 64}},
                                  {{"causal", true}, {"window", Value(int64_t{131})}}},
                                 DType::kBFloat16);
  Check(spec, "attention", 5);
  Check(SpecOf({"attention_masked", {{1, 2, 323, 128}, {1, 2, 257, 128}}, {}}, DType::kFloat16),
        "attention", 2);
  Check(SpecOf({"attention_varlen", {{5, 2, 131, 128}, {5, 1, 389, 128}}, {}}, DType::kFloat16),
        "attention", 2);
}
TEST_F(Forward, InFloat32) { CheckAll(DType::kFloat32, 37, 1); }
TEST_F(ForwardOnAmpere, ByTheThreads) {
  CheckAll(DType::kFloat16, 37);
  CheckAll(DType::kBFloat16, 128);
}
TEST_F(Forward, MasksOfInfinitiesAndLeastNumbers) {
  struck_ = true;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    Check(SpecOf({"attention_masked", {{1, 2, 90, 40}, {1, 2, 150, 40}}, {}}, dtype), "attention",
          2);
}

class Gradients : public GraphKernels {
 protected:
  Gradients() : GraphKernels("H200") {}
  static KernelSpec Task(int64_t heads, int64_t key_heads, int64_t length, int64_t dim, DType dtype,
                         bool causal, double scale = 0, int64_t ahead = 0, int64_t window = 0) {
    return SpecOf({"attention_gqa_backward",
                   {{1, heads, length, dim}, {1, key_heads, length + ahead, dim}},
                   {{"causal", causal}, {"scale", scale}, {"window", window}}},
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

TEST_F(Gradients, OfWindowsAndOtherNumbersOfKeys) {
  Check(Task(2, 1, 131, 64, DType::kBFloat16, true, 0, 70, 29), "attention_backward", 1);
  Check(Task(1, 1, 203, 128, DType::kFloat16, true, 0, 0, 67), "attention_backward");
  Check(Task(1, 1, 197, 64, DType::kBFloat16, false, -0.2, -66, 61), "attention_backward");
  Check(Task(1, 1, 131, 256, DType::kFloat16, true, 0, 139), "attention_backward");
}

TEST_F(Gradients, WhereASingleKeyHasAllWeightNothingIsLeftOver) {
  inputs_ = InputFamily::kLargeLogits;
  Check(Task(1, 1, 70, 64, DType::kFloat16, true), "attention_backward");
  Check(Task(1, 1, 150, 64, DType::kFloat16, false), "attention_backward");
}

TEST_F(Gradients, OtherGraphsOfTheNameAreNotMatched) {
  KernelSpec spec = Task(1, 1, 64, 64, DType::kBFloat16, false);
  EXPECT_TRUE(kAttentionBackwardFamily.Try(Task::Of(spec)));
  spec.oracle.graph = Task(1, 1, 64, 64, DType::kBFloat16, true).oracle.graph;
  EXPECT_FALSE(kAttentionBackwardFamily.Try(Task::Of(spec)));
}

}  // namespace
}  // namespace atunner
