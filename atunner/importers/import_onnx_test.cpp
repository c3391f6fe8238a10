#include "atunner/importers/import_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/text.h"
#include "atunner/importers/onnx/onnx_model.h"
#include "atunner/importers/onnx_support_test.h"

namespace atunner::importers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<ImportedModel> Import(const OnnxParts& parts, const ImportOptions& options = {},
                             const std::string& functions = {}) {
  return ImportOnnx(OnnxModelOf(parts, functions), "model", ".", options);
}

/// The only result on these inputs.
std::vector<double> Values(const ImportedModel& model, const std::vector<graph::Tensor>& inputs) {
  const auto outputs = graph::Evaluate(model.graph, inputs);
  EXPECT_TRUE(outputs) << (outputs ? "" : outputs.error().ToString());
  return outputs ? outputs->at(0).Reals() : std::vector<double>();
}
graph::Tensor Row(const std::vector<double>& values) {
  return graph::Tensor::Of(DType::kFloat32, {1, static_cast<int64_t>(values.size())}, values);
}

/// y = x · W + b.
OnnxParts Linear() {
  return {{OnnxNodeOf("Gemm", {"x", "layer.weight", "layer.bias"}, {"y"})},
          {OnnxRaw<float>("layer.weight", {2, 3}, kOnnxFloat, {1, 2, 3, 4, 5, 6}),
           OnnxRaw<float>("layer.bias", {3}, kOnnxFloat, {10, 20, 30})},
          {OnnxInfo("x", {1, 2})},
          {OnnxInfo("y", {1, 3})}};
}

TEST(Onnx, WeightsAreInputsWithTheirPlaceInTheFile) {
  const std::string bytes = OnnxModelOf(Linear());
  const auto model = ImportOnnx(bytes, "model", ".");
  ASSERT_TRUE(model) << model.error().ToString();
  ASSERT_EQ(model->inputs.size(), 3u);
  EXPECT_EQ(model->inputs[0].kind, InputKind::kUser);
  EXPECT_EQ(model->inputs[1].name, "layer_weight");
  EXPECT_EQ(model->inputs[1].qualified_name, "layer.weight");
  ASSERT_TRUE(model->inputs[1].place);
  float third = 0;
  std::memcpy(&third, bytes.data() + model->inputs[1].place->file_offset + 8, sizeof third);
  EXPECT_EQ(third, 3);
  const auto weight = graph::Tensor::Of(DType::kFloat32, {2, 3},
                                        std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto bias = graph::Tensor::Of(DType::kFloat32, {3}, std::vector<double>{10, 20, 30});
  EXPECT_THAT(Values(*model, {Row({1, 2}), weight, bias}), ElementsAre(19, 32, 45));
}

TEST(Onnx, ShapesAreComputedWhileTheModelIsRead) {
  // reshape(x, concat(shape(x)[1:2], [-1])), as exporters write a view.
  const auto model = Import(
      {{OnnxNodeOf("Shape", {"x"}, {"sizes"}), OnnxNodeOf("Gather", {"sizes", "one"}, {"second"}),
        OnnxNodeOf("Concat", {"second", "rest"}, {"wanted"}, {WholeAttribute("axis", 0)}),
        OnnxNodeOf("Reshape", {"x", "wanted"}, {"y"})},
       {OnnxRaw<int64_t>("one", {1}, kOnnxInt64, {1}),
        OnnxRaw<int64_t>("rest", {1}, kOnnxInt64, {-1})},
       {OnnxInfo("x", {2, 3, 4})},
       {OnnxInfo("y", {3, 8})}});
  ASSERT_TRUE(model) << model.error().ToString();
  EXPECT_THAT(graph::Print(model->graph), HasSubstr("reshape(x, shape=[3, 8])"));
}

TEST(Onnx, OpenAxesNeedSizes) {
  const OnnxParts parts{
      {OnnxNodeOf("Relu", {"x"}, {"y"})}, {}, {OnnxInfo("x", {-1, 2})}, {OnnxInfo("y", {-1, 2})}};
  const auto refused = Import(parts);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("the sizes of these axes are open: n"));
  EXPECT_THAT(refused.error().ToString(), HasSubstr("--dim n=8"));
  const auto model = Import(parts, {{{"n", 3}}, {}});
  ASSERT_TRUE(model);
  EXPECT_THAT(graph::Print(model->graph), HasSubstr("input x: float32[3, 2]"));
}

TEST(Onnx, AllUnknownOperatorsAreNamed) {
  const auto refused = Import({{OnnxNodeOf("Tokenizer", {"x"}, {"a"}),
                                OnnxNodeOf("Fancy", {"a"}, {"y"}, {}, "com.example")},
                               {},
                               {OnnxInfo("x", {2})},
                               {OnnxInfo("y", {2})}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("Tokenizer (node 'a' (Tokenizer))"));
  EXPECT_THAT(refused.error().ToString(), HasSubstr("com.example.Fancy"));
}

TEST(Onnx, UnknownOperatorsThatNoResultNeedsAreIgnored) {
  EXPECT_TRUE(Import({{OnnxNodeOf("Tokenizer", {"x"}, {"a"}), OnnxNodeOf("Relu", {"x"}, {"y"})},
                      {},
                      {OnnxInfo("x", {2})},
                      {OnnxInfo("y", {2})}}));
}

TEST(Onnx, FunctionsTakeThePlaceOfTheirCalls) {
  // scaled(a) = leaky_relu(a, slope of the call).
  const std::string reference = BytesField(1, "alpha") + BytesField(21, "slope") +
                                WholeField(20, 1);
  const std::string function = BytesField(1, "scaled") + BytesField(4, "a") + BytesField(5, "b") +
                               BytesField(7, OnnxNodeOf("LeakyRelu", {"a"}, {"b"}, {reference})) +
                               BytesField(9, WholeField(2, 17)) + BytesField(10, "mine");
  const auto model = Import(
      {{OnnxNodeOf("scaled", {"x"}, {"y"}, {FloatAttribute("slope", 0.5f)}, "mine")},
       {},
       {OnnxInfo("x", {1, 2})},
       {OnnxInfo("y", {1, 2})}},
      {}, BytesField(25, function));
  ASSERT_TRUE(model) << model.error().ToString();
  EXPECT_THAT(Values(*model, {Row({-2, 2})}), ElementsAre(-1, 2));
}

TEST(Onnx, ABranchIsChosenByAConstant) {
  const auto branch = [](const char* op) {
    return OnnxGraphOf({{OnnxNodeOf(op, {"x"}, {"inner"})}, {}, {}, {OnnxInfo("inner", {1, 2})}});
  };
  const auto model = Import({{OnnxNodeOf("If", {"condition"}, {"y"},
                                         {GraphAttribute("then_branch", branch("Neg")),
                                          GraphAttribute("else_branch", branch("Abs"))})},
                             {OnnxRaw<char>("condition", {}, kOnnxBool, {1})},
                             {OnnxInfo("x", {1, 2})},
                             {OnnxInfo("y", {1, 2})}});
  ASSERT_TRUE(model) << model.error().ToString();
  EXPECT_THAT(Values(*model, {Row({3, -4})}), ElementsAre(-3, 4));
}

TEST(Onnx, ComputedShapesAreRefusedUnlessTheyAreBound) {
  const OnnxParts parts{{OnnxNodeOf("Reshape", {"x", "sizes"}, {"y"})},
                        {},
                        {OnnxInfo("x", {2, 3}), OnnxInfo("sizes", {2}, kOnnxInt64)},
                        {OnnxInfo("y", {3, 2})}};
  const auto refused = Import(parts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("node 'y' (Reshape)"));
  const auto sizes = graph::Tensor::Of(DType::kInt64, {2}, std::vector<double>{3, 2});
  EXPECT_TRUE(Import(parts, {{}, {{"sizes", sizes}}}));
}

TEST(Onnx, ExternalDataStaysInTheModelsFolder) {
  const auto dir = TemporaryDirectory::Make();
  ASSERT_TRUE(dir);
  const std::vector<int64_t> elements{3, 2};
  ASSERT_TRUE(WriteFileAtomic(
      dir->path() / "data.bin",
      std::string(8, '\0') + std::string(reinterpret_cast<const char*>(elements.data()), 16)));
  const auto import = [&](const std::string& location, int64_t offset) {
    const auto entry = [](const std::string& key, const std::string& value) {
      return BytesField(13, BytesField(1, key) + BytesField(2, value));
    };
    const std::string tensor = WholeField(1, 2) + WholeField(2, kOnnxInt64) +
                               BytesField(8, "sizes") + WholeField(14, 1) +
                               entry("location", location) +
                               entry("offset", std::to_string(offset));
    return ImportOnnx(OnnxModelOf({{OnnxNodeOf("Reshape", {"x", "sizes"}, {"y"})},
                                   {tensor},
                                   {OnnxInfo("x", {2, 3})},
                                   {OnnxInfo("y", {3, 2})}}),
                      "model", dir->path().string());
  };
  EXPECT_TRUE(import("data.bin", 8)) << import("data.bin", 8).error().ToString();
  EXPECT_THAT(import("data.bin", 16).error().ToString(), HasSubstr("no 16 bytes at 16"));
  EXPECT_THAT(import("../data.bin", 8).error().ToString(), HasSubstr("in the model's folder"));
  EXPECT_THAT(import("/etc/passwd", 8).error().ToString(), HasSubstr("in the model's folder"));
  EXPECT_FALSE(import("missing.bin", 8));
}

TEST(Onnx, WeightsStayInTheModelsFolder) {
  const auto import = [](const std::string& location) {
    const std::string tensor = WholeField(1, 4) + WholeField(2, kOnnxFloat) + BytesField(8, "w") +
                               BytesField(13, BytesField(1, "location") + BytesField(2, location));
    return Import({{OnnxNodeOf("Add", {"x", "w"}, {"y"})},
                   {tensor},
                   {OnnxInfo("x", {4})},
                   {OnnxInfo("y", {4})}});
  };
  EXPECT_TRUE(import("weights/w.bin"));
  EXPECT_THAT(import("weights/../../w.bin").error().ToString(), HasSubstr("in the model's folder"));
  EXPECT_THAT(import("/etc/passwd").error().ToString(), HasSubstr("in the model's folder"));
}

TEST(Onnx, ACycleIsNamed) {
  const auto refused = Import(
      {{OnnxNodeOf("Add", {"x", "b"}, {"a"}), OnnxNodeOf("Relu", {"a"}, {"b"})},
       {},
       {OnnxInfo("x", {2})},
       {OnnxInfo("b", {2})}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("'b' is used before it is computed"));
}

TEST(Onnx, UnknownOperatorSetsAreRefused) {
  for (const int64_t opset : {0, 29, 99}) {
    const auto refused = ImportOnnx(OnnxModelOf(Linear(), {}, opset), "model", ".");
    ASSERT_FALSE(refused) << opset;
    EXPECT_THAT(refused.error().ToString(), HasSubstr("operator set " + std::to_string(opset)));
  }
  EXPECT_TRUE(ImportOnnx(OnnxModelOf(Linear(), {}, 28), "model", "."));
}

TEST(Onnx, WeightsOfAnotherSizeAreRefused) {
  OnnxParts parts = Linear();
  parts.initializers[0] = OnnxRaw<char>("layer.weight", {2, 3}, kOnnxFloat, {1, 2, 3, 4, 5, 6, 7});
  const auto refused = Import(parts);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("has 7 bytes in the file and 24"));
}

TEST(Onnx, FilesCutAnywhereAreRefusedOrSmaller) {
  const std::string bytes = OnnxModelOf(Linear());
  ASSERT_TRUE(LooksLikeOnnx(bytes));
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size)
    refused += ImportOnnx(bytes.substr(0, size), "model", ".") ? 0 : 1;
  EXPECT_GE(refused, bytes.size() - 8) << "without its last field the model has no opset";
  EXPECT_THAT(ImportOnnx(bytes.substr(0, bytes.size() / 2), "model", ".").error().ToString(),
              HasSubstr("damaged or cut off"));
}

}  // namespace
}  // namespace atunner::importers
