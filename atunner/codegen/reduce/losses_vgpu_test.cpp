// Losses of labelled rows on the virtual GPU, and what else takes several stages.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "atunner/codegen/tests/graph_kernels_test.h"

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
      for (const char* input : {"logits", "x"}) {
        if (column % 256 < 200) Put(buffers, input, 2 * classes_ + column, nothing);
        Put(buffers, input, 5 * classes_ + column, nothing);
      }
    }
    for (const char* input : {"logits", "x"}) {
      if (infinite_) Put(buffers, input, 3 * classes_ + 77, std::numeric_limits<float>::infinity());
    }
  }
  template <class T>
  void Put(const TaskBuffers& buffers, const char* name, int64_t at, T value) {
    const auto* tensor = buffers.Find(name);
    if (tensor != nullptr && at < tensor->shape.elements)
      EXPECT_TRUE(
          gpu_.CopyIn(tensor->address + at * sizeof(T), std::as_bytes(std::span(&value, 1))));
  }
  void CheckLoss(const char* op, int64_t rows, int64_t classes, DType dtype,
                 Attributes attributes = {}, const char* family = "stages", size_t drawn = 1) {
    rows_ = rows, classes_ = classes;
    Check(SpecOf({op, {{rows, classes}}, std::move(attributes)}, dtype), family, drawn);
  }
  int64_t rows_ = 0, classes_ = 0;
  bool infinite_ = false;  ///< masked logits
};

TEST_F(Losses, OfLabels) {
  for (const auto& [rows, classes] : {std::pair{7, 509}, std::pair{6, 1031}, std::pair{5, 5}}) {
    for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const char* op : {"cross_entropy", "cross_entropy_backward", "nll_loss_backward"})
        CheckLoss(op, rows, classes, dtype, {}, "stages", classes == 1031 ? 1 : 0);
    }
  }
  CheckLoss("cross_entropy_backward", 5, 50257, DType::kBFloat16, {}, "stages", 0);
  CheckLoss("cross_entropy", 40, 300, DType::kFloat32, {{"label_smoothing", 0.1}});
  CheckLoss("cross_entropy_backward", 40, 300, DType::kFloat32, {{"label_smoothing", 0.1}});
  CheckLoss("cross_entropy", 9, 300, DType::kFloat32, {{"reduction", std::string("none")}},
            "reduction");
  CheckLoss("cross_entropy", 9, 1031, DType::kFloat32, {{"reduction", std::string("sum")}});
}

TEST_F(Losses, OfRows) {
  for (const char* op : {"cosine_loss", "triplet_loss"}) CheckLoss(op, 40, 300, DType::kFloat32);
  for (const char* op : {"cosine_loss_backward", "triplet_loss_backward"})
    CheckLoss(op, 40, 300, DType::kFloat32, {}, "columns");
}

// A block goes from row to row: the next one is asked for where the last pass has read this one.
TEST_F(Losses, RowsMayStayInSharedMemoryBetweenPasses) {
  DeviceProfile one_sm = gpu_.profile();
  one_sm.sms = 1;
  for (const auto& [op, columns] :
       {std::pair{"cross_entropy_backward", 10001}, {"log_softmax", 12288}}) {
    rows_ = 7, classes_ = columns;
    const KernelSpec spec = SpecOf({op, {{rows_, classes_}}, {}}, DType::kBFloat16);
    const auto schedule = MakeTemplate(spec, one_sm).value();
    Configuration ring = schedule->Default();
    const auto set = [&](const char* name, Value value) {
      ring.values[static_cast<size_t>(schedule->space().Find(name))] = std::move(value);
    };
    set("storage", std::string("shared")), set("blocks_per_sm", int64_t{1});
    set("threads_per_row", int64_t{256}), set("rows_per_block", int64_t{2}),
        set("vector", int64_t{8});
    ASSERT_TRUE(schedule->space().Allows(ring, spec.dims).value());
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec);
    ASSERT_TRUE(oracle.has_value()) << oracle.error().ToString();
    CheckConfiguration(spec, *schedule, ring, **oracle);
  }
}

// Masked classes are -infinity: they count nothing, wherever they stand, unless all are.
TEST_F(Losses, InfiniteLogits) {
  infinite_ = true;
  CheckLoss("cross_entropy", 24, 1031, DType::kFloat32, {{"reduction", std::string("none")}},
            "reduction", 4);
  CheckLoss("cross_entropy", 24, 2048, DType::kFloat32, {{"reduction", std::string("none")}},
            "reduction", 4);
  CheckLoss("logsumexp", 24, 2047, DType::kFloat32, {}, "reduction", 4);
}

// Blocks share such rows, and tell each other what they have found.
TEST_F(Losses, RowsThatExceedABlock) {
  infinite_ = true, rows_ = 9, classes_ = 4096;
  DeviceProfile few = gpu_.profile();
  few.sms = 4;
  for (const char* op : {"log_softmax", "logsumexp"}) {
    const KernelSpec spec = SpecOf({op, {{rows_, classes_}}, {}}, DType::kFloat32);
    const auto schedule = kColumnsFamily.Try(Task::Of(spec)).bind(few).value();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec);
    ASSERT_TRUE(oracle.has_value()) << oracle.error().ToString();
    for (int64_t hold : {0, 2}) {
      if (hold > 0 && spec.name == "logsumexp") continue;
      const Configuration one = WithValues(*schedule, {{"kept_threads", 1},
                                                       {"reduced_threads", 64},
                                                       {"vector", 4},
                                                       {"splits", 2},
                                                       {"unroll", 4},
                                                       {"hold", hold},
                                                       {"rings", 1}});
      for (InputFamily inputs : {InputFamily::kNormal, InputFamily::kLargeLogits}) {
        inputs_ = inputs;
        CheckConfiguration(spec, *schedule, one, **oracle);
      }
    }
  }
}

/// Rows that share their places with many others, and places that no row has.
class Scattered : public GraphKernels {
 protected:
  Scattered() : GraphKernels("H200") {}
  void PutInto(const TaskBuffers& buffers) override {
    const auto* places = buffers.Find("indices");
    std::vector<int64_t> values(places->shape.elements);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 3 == 0 ? 4 : static_cast<int64_t>(i * i % 23) - 3;
    EXPECT_TRUE(gpu_.CopyIn(places->address, std::as_bytes(std::span(values))));
  }
};

TEST_F(Scattered, RowsAreCombinedInOrder) {
  for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const char* op : {"scatter_add", "scatter", "scatter_max"})
      Check(SpecOf({op, {{17, 72}, {201}}, {}}, dtype), "scatter", 2);
    // some twenty of each, and 240 of one
    Check(SpecOf({"scatter", {{40, 8}, {701}}, {}}, dtype), "scatter", 1);
    Check(SpecOf({"embedding_backward", {{300, 24}, {5, 61}}, {}}, dtype), "scatter", 1);
    Check(SpecOf({"scatter_add", {{600, 5}, {2}}, {}}, dtype), "scatter", 1);
  }
}

TEST_F(Scattered, AlongAnyAxis) {
  for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Check(SpecOf({"index_select_backward", {{3, 17, 24}, {50}}, {{"axis", int64_t{1}}}}, dtype),
          "scatter", 2);
    Check(SpecOf({"index_select_backward", {{5, 300}, {70}}, {{"axis", int64_t{1}}}}, dtype),
          "scatter_strips", 2);
    Check(SpecOf({"gather_backward", {{3, 2, 19}, {3, 2, 201}}, {}}, dtype), "scatter_strips", 2);
    Check(SpecOf({"gather_backward", {{7, 1000}, {7, 33}}, {}}, dtype), "scatter_strips", 2);
  }
  const auto check = [&](const std::string& lines, const char* family) {
    Check(SpecOfGraph(
              graph::Parse("graph g\ninput x: float32[3, 9, 4]\ninput indices: int64[3, 11]\n" +
                               lines + "output y\n",
                           "test.atg")
                  .value(),
              {})
              .value(),
          family, 1);
  };
  check(
      "input u: float32[3, 11, 4]\nw = u * 2\ns = scatter_set(x, indices, w, axis=1, batch=1)\ny = "
      "exp(s)\n",
      "scatter");
  check(
      "input u: float32[3, 9, 11]\nz = transpose(x, order=[0, 2, 1])\na = slice(z, axis=1, "
      "start=0, stop=1)\n"
      "b = reshape(a, shape=[3, 9])\nc = slice(u, axis=1, start=2, stop=3)\nd = reshape(c, "
      "shape=[3, 11])\n"
      "y = scatter_max(b, indices, d, axis=1, batch=1)\n",
      "scatter_strips");
}

class FirstOfRows : public GraphKernels {
 protected:
  FirstOfRows() : GraphKernels("H200") {}
  static constexpr int64_t kManyNaN = 1500;
  /// Equal elements, zeros of both signs and NaN; a row whose best elements lie where half of 128
  /// threads read.
  void PutInto(const TaskBuffers& buffers) override {
    const auto* x = buffers.Find("x");
    if (x->spec->dtype != DType::kFloat32) return;
    const int64_t columns = x->shape.extents.back();
    std::vector<float> row(static_cast<size_t>(columns));
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<float>(i % 7) * (i % 2 == 0 ? 0.0F : -0.0F);
    row[columns / 2] = NAN;
    for (size_t i = 0; i < row.size() && columns == kManyNaN; ++i)
      row[i] = i % 37 == 0 ? 1.0F : NAN;
    Put(*x, 0, row);
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = (i / 4 % 128 < 63 ? 1.0F : 0.0F) + static_cast<float>(i % 97) / 100;
    if (x->shape.elements > columns) Put(*x, columns, row);
  }
  void Put(const TaskBuffers::Tensor& tensor, int64_t at, const std::vector<float>& values) {
    EXPECT_TRUE(gpu_.CopyIn(tensor.address + at * sizeof(float), std::as_bytes(std::span(values))));
  }
};

TEST_F(FirstOfRows, OfAnyLength) {
  for (const auto& [columns, k] : {std::pair{32, 5}, {1000, 64}, {2048, 8}, {300, 1}, {200, 200}}) {
    for (const bool largest : {true, false}) {
      const DType dtype = largest ? DType::kFloat32 : DType::kBFloat16;
      Check(SpecOf({"topk", {{3, columns}}, {{"k", int64_t{k}}, {"largest", largest}}}, dtype),
            "topk", 1);
    }
  }
}

TEST_F(FirstOfRows, ManyBySortingAll) {
  for (const int64_t columns : {257, 1000, 2048}) {
    Check(SpecOf({"sort", {{3, columns}}, {{"descending", columns == 1000}}}, DType::kFloat32),
          "topk", 2);
    Check(SpecOf({"topk", {{3, columns}}, {{"k", int64_t{257}}}}, DType::kBFloat16), "topk", 1);
  }
  Check(SpecOf({"sort", {{70, 1}}, {}}, DType::kFloat32), "topk", 1);
}

// What is computed of places, as in a search by beams: an int64 like any other.
TEST_F(FirstOfRows, PlacesAreTakenApart) {
  const std::string text =
      "graph g\ninput x: float32[3, 300]\ns = sort(x, axis=1, descending=true, count=8)\ny = "
      "gather(x, s, axis=1, "
      "batch=1)\nbeam = floor_div(s, 100)\ntoken = mod(s, 100) + minimum(s, 7)\noutput y\noutput "
      "beam\noutput token\n";
  Check(SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value(), "topk", 1);
}

// As many digits as types have bytes, of numbers with and without signs' own order.
TEST_F(FirstOfRows, SortedOfAnyType) {
  for (const DType dtype :
       {DType::kFloat64, DType::kFloat16, DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
        DType::kUInt8, DType::kUInt32, DType::kBool}) {
    for (const char* sorted : {"[3, 300]\ns = sort(x, axis=1)",
                               "[3, 77]\ns = sort(x, axis=1, descending=true, count=2)"}) {
      const std::string text = fmt::format(
          "graph g\ninput x: {}{}\ny = gather(x, s, axis=1, batch=1)\noutput y\noutput s\n",
          Name(dtype), sorted);
      Check(SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value(), "topk", 1);
    }
  }
}

TEST_F(FirstOfRows, ManyOfThemNoNumbers) {
  for (const bool largest : {true, false})
    Check(SpecOf({"topk", {{1, kManyNaN}}, {{"k", int64_t{30}}, {"largest", largest}}},
                 DType::kFloat32),
          "topk", 3);
}

TEST_F(FirstOfRows, LongOnesBySortingTilesThatAreMerged) {
  for (const int64_t columns : {8196, 16384, 20000}) {
    Check(SpecOf({"sort", {{2, columns}}, {{"descending", columns == 16384}}}, DType::kFloat32),
          "topk", 0);
    Check(SpecOf({"topk", {{2, columns}}, {{"k", int64_t{5000}}}}, DType::kBFloat16), "topk", 0);
  }
}

TEST_F(FirstOfRows, OfPartsOfLongOnes) {
  Check(SpecOf({"topk", {{2, 32768}}, {{"k", int64_t{20}}}}, DType::kFloat32), "stages", 0);
  Check(SpecOf({"topk", {{2, 32768}}, {{"k", int64_t{20}}, {"largest", false}}}, DType::kBFloat16),
        "stages", 0);
}

// More than are collected at once: the bound comes closer.
TEST_F(FirstOfRows, InTheHandsOfFewThreads) {
  const KernelSpec spec = SpecOf({"topk", {{2, 4096}}, {{"k", int64_t{64}}}}, DType::kFloat32);
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  const Configuration one = WithValues(*schedule, {{"block", 128}});
  CheckConfiguration(spec, *schedule, one, *oracle);
  EXPECT_GT(verified_, 0u);
}

}  // namespace
}  // namespace atunner
