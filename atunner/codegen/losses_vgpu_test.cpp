// Losses of labelled rows on the virtual GPU, and what else takes several stages.
#include <cmath>
#include <limits>

#include "atunner/codegen/graph_kernels_test.h"

namespace atunner {
namespace {

class Losses : public GraphKernels {
 protected:
  Losses() : GraphKernels("H200") {}
  /// Labels that count nothing, that no class has, and of the first and the last class.
  void PutInto(const TaskBuffers& buffers) override {
    const int64_t last = classes_ - 1;
    const std::pair<int64_t, int64_t> labels[] = {{0, -100}, {1, last + 5}, {2, 0}, {4, last}};
    for (const auto& [row, label] : labels) {
      if (row < rows_) Put(buffers, "labels", row, label);
    }
    for (int64_t column = 0; column < classes_ && infinite_; ++column) {
      const float nothing = -INFINITY;
      if (column % 256 < 200) Put(buffers, "logits", 2 * classes_ + column, nothing);
      Put(buffers, "logits", 5 * classes_ + column, nothing);
    }
    if (infinite_) Put(buffers, "logits", 3 * classes_ + 77, std::numeric_limits<float>::infinity());
  }
  template <class T>
  void Put(const TaskBuffers& buffers, const char* name, int64_t at, T value) {
    const auto* tensor = buffers.Find(name);
    if (tensor != nullptr)
      EXPECT_TRUE(gpu_.CopyIn(tensor->address + at * sizeof(T), std::as_bytes(std::span(&value, 1))));
  }
  void CheckLoss(const char* op, int64_t rows, int64_t classes, DType dtype, Attributes attributes = {},
                 const char* family = "stages", size_t drawn = 1) {
    rows_ = rows, classes_ = classes;
    Check(SpecOf({op, {{rows, classes}}, std::move(attributes)}, dtype), family, drawn);
  }
  int64_t rows_ = 0, classes_ = 0;
  bool infinite_ = false;  ///< masked logits
};

TEST_F(Losses, OfLabels) {
  for (const auto& [rows, classes] : {std::pair{7, 509}, std::pair{6, 1031}, std::pair{9, 4096}, std::pair{5, 5}}) {
    for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const char* op : {"cross_entropy", "cross_entropy_backward", "nll_loss_backward"})
        CheckLoss(op, rows, classes, dtype);
    }
  }
  CheckLoss("cross_entropy", 7, 50257, DType::kFloat16);
  CheckLoss("cross_entropy_backward", 5, 50257, DType::kBFloat16);
  CheckLoss("cross_entropy", 40, 300, DType::kFloat32, {{"label_smoothing", 0.1}});
  CheckLoss("cross_entropy_backward", 40, 300, DType::kFloat32, {{"label_smoothing", 0.1}});
  CheckLoss("cross_entropy", 9, 300, DType::kFloat32, {{"reduction", std::string("none")}}, "reduction");
  CheckLoss("cross_entropy", 9, 1031, DType::kFloat32, {{"reduction", std::string("sum")}});
}

TEST_F(Losses, OfRows) {
  for (const char* op : {"cosine_loss", "triplet_loss", "cosine_loss_backward", "triplet_loss_backward"})
    CheckLoss(op, 40, 300, DType::kFloat32);
}

// Masked classes are -infinity: they count nothing, wherever they stand, unless all are.
TEST_F(Losses, InfiniteLogits) {
  infinite_ = true;
  CheckLoss("cross_entropy", 24, 1031, DType::kFloat32, {{"reduction", std::string("none")}}, "reduction", 4);
  CheckLoss("cross_entropy", 24, 2048, DType::kFloat32, {{"reduction", std::string("none")}}, "reduction", 4);
}

}  // namespace
}  // namespace atunner
