// Containers, schemas and hostile programs. The values of operators are compared with PyTorch's by
// tests/torch/models.py.
#include "atunner/importers/import_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/importers/program/program_reader.h"
#include "atunner/importers/zip_support_test.h"

namespace atunner::importers {
namespace {

using testing::HasSubstr;

Result<ImportedModel> ImportArchive(const std::vector<TestEntry>& entries) {
  ATUNNER_TRY(const ModelFile file, ReadModelArchive(ZipOf(entries), "small.pt2"));
  return ImportProgram(file, "small");
}
Result<ImportedModel> ImportText(const std::string& text) {
  ModelFile file;
  ATUNNER_TRY(file.program, ReadProgram(text, "model.json"));
  return ImportProgram(file, "small");
}
std::string ErrorOf(const Result<ImportedModel>& result) {
  return result ? "no error" : result.error().ToString();
}
std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ImportModel, AnArchiveOfPyTorch28IsRead) {
  for (const char* config : {"model_weights_config.json", "model_model_param_config.json"}) {
    const auto model = ImportArchive(SmallArchive(config));
    ASSERT_TRUE(model.has_value()) << ErrorOf(model);
    ASSERT_EQ(model->inputs.size(), 2U);
    EXPECT_EQ(model->inputs[0].name, "x");  // inputs of users come first
    EXPECT_EQ(model->inputs[1].qualified_name, "w");
    ASSERT_TRUE(model->inputs[1].place.has_value());
    EXPECT_EQ(model->inputs[1].place->file, "data/weights/weight_0");
    EXPECT_GT(model->inputs[1].place->file_offset, 0U);
    const auto x = graph::Tensor::Of(DType::kFloat32, {2, 3},
                                     std::vector<double>{1, 2, 3, 4, 5, 6});
    const auto w = graph::Tensor::Of(DType::kFloat32, {2, 3},
                                     std::vector<double>{-3, 1, 0, -9, 1, 1});
    const auto y = graph::Evaluate(model->graph, std::vector{x, w});
    ASSERT_TRUE(y.has_value());
    EXPECT_THAT((*y)[0].Reals(), testing::ElementsAre(0, 3, 3, 0, 6, 7));
  }
}

TEST(ImportModel, AnArchiveOfPyTorch25IsReadWithoutItsPickles) {
  for (const char* root : {"", "archive/"}) {
    const std::string at(root);
    const auto model = ImportArchive({{at + "version", "8.7"},
                                      {at + "serialized_exported_program.json", SmallProgram()},
                                      {at + "serialized_state_dict.pt", "PK…"},
                                      {at + "serialized_constants.pt", ""}});
    ASSERT_TRUE(model.has_value()) << ErrorOf(model);
    EXPECT_FALSE(model->inputs[1].place.has_value());
    EXPECT_THAT(model->notes, testing::Contains(HasSubstr("pickle")));
  }
}

TEST(ImportModel, Zip64IsRead) {
  auto entries = SmallArchive();
  for (TestEntry& entry : entries) entry.zip64 = true;
  EXPECT_EQ(ErrorOf(ImportArchive(entries)), "no error");
}

TEST(ImportModel, TheSchemaDecides) {
  const auto seven = ImportText(SmallProgram(7));
  ASSERT_TRUE(seven.has_value()) << ErrorOf(seven);
  EXPECT_THAT(seven->notes, testing::Contains(HasSubstr("schema 7")));
  const auto nine = ImportText(SmallProgram(9));
  ASSERT_FALSE(nine.has_value());
  EXPECT_EQ(nine.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(ErrorOf(nine), HasSubstr("schema 9"));
}

TEST(ImportModel, AllUnknownOperatorsAreNamedAtOnce) {
  std::string text = Replaced(SmallProgram(8, "aten.fancy.default"), "aten.add.Tensor",
                              "mine.other.default");
  const std::string error = ErrorOf(ImportText(text));
  EXPECT_THAT(error, HasSubstr("aten.fancy.default (node 'relu')"));
  EXPECT_THAT(error, HasSubstr("mine.other.default (node 'add')"));
}

TEST(ImportModel, NodesThatNobodyNeedsAreIgnored) {
  const std::string unused =
      R"("nodes": [{"target": "torch.ops.aten.fancy.default", "inputs": [], "outputs": []},)";
  const auto model = ImportText(Replaced(SmallProgram(), "\"nodes\": [", unused));
  EXPECT_TRUE(model.has_value()) << ErrorOf(model);
}

TEST(ImportModel, DamagedArchivesAreOneMessage) {
  const std::string good = ZipOf(SmallArchive());
  for (const size_t size : {size_t{0}, size_t{10}, good.size() / 2, good.size() - 1}) {
    const auto file = ReadModelArchive(good.substr(0, size), "cut.pt2");
    ASSERT_FALSE(file.has_value());
    EXPECT_THAT(file.error().ToString(), HasSubstr("cut.pt2"));
  }
  const auto with = [](auto&& change) {
    auto entries = SmallArchive();
    change(entries);
    return ErrorOf(ImportArchive(entries));
  };
  EXPECT_THAT(with([](auto& e) { e[3].method = 8; }), HasSubstr("compressed"));
  EXPECT_THAT(with([](auto& e) { e[3].checksum_xor = 1; }), HasSubstr("checksum"));
  EXPECT_THAT(with([](auto& e) { e[5].name = "small/../../x"; }), HasSubstr("leaves the archive"));
  EXPECT_THAT(with([](auto& e) { e[5].name = "/x"; }), HasSubstr("leaves the archive"));
  EXPECT_THAT(with([](auto& e) { e[5].name = e[4].name; }), HasSubstr("two entries"));
  EXPECT_THAT(with([](auto& e) { e[2].more_bytes = 60; }), HasSubstr("overlap"));
  EXPECT_THAT(with([](auto& e) { e[5].more_bytes = 100000; }),
              HasSubstr("longer than the archive"));
  EXPECT_THAT(with([](auto& e) { e[5].shift = 1; }), HasSubstr("damaged"));
  EXPECT_THAT(with([](auto& e) { e[1].content = "1"; }), HasSubstr("another version"));
  EXPECT_THAT(with([](auto& e) { e[0].name = "small/other"; }), HasSubstr("no exported program"));
  EXPECT_THAT(with([](auto& e) { e.erase(e.begin() + 3); }), HasSubstr("0 models"));
}

TEST(ImportModel, MissingWeightsAreOneMessage) {
  const auto with = [](auto&& change) {
    auto entries = SmallArchive();
    change(entries);
    return ErrorOf(ImportArchive(entries));
  };
  EXPECT_THAT(with([](auto& e) { e.erase(e.begin() + 5); }), HasSubstr("weight_0' is missing"));
  EXPECT_THAT(with([](auto& e) { e[5].content = "short"; }), HasSubstr("does not hold the tensor"));
  EXPECT_THAT(with([](auto& e) { e[4].content = R"({"config": {}})"; }),
              HasSubstr("weights are missing: w"));
  EXPECT_THAT(with([](auto& e) { e[4].content = SmallConfig("weight_0", true); }),
              HasSubstr("pickle"));
  EXPECT_THAT(with([](auto& e) { e[4].content = "[]"; }), HasSubstr("'config'"));
}

TEST(ImportModel, WrongProgramsAreOneMessage) {
  const std::string good = SmallProgram();
  const auto with = [&](const std::string& from, const std::string& to) {
    return ErrorOf(ImportText(Replaced(good, from, to)));
  };
  EXPECT_THAT(ErrorOf(ImportText("")), HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf(ImportText("{}")), HasSubstr("schema_version.major"));
  EXPECT_THAT(ErrorOf(ImportText(R"({"ConfigurationSpace": {}})")), HasSubstr("`atunner tune`"));
  EXPECT_THAT(ErrorOf(ImportText(std::string(100000, '['))), HasSubstr("256 levels"));
  // The first node takes the second one's result: a cycle.
  EXPECT_THAT(with("{\"name\": \"x\"}", "{\"name\": \"relu\"}"), HasSubstr("has a cycle"));
  EXPECT_THAT(with("{\"name\": \"add\"}}]", "{\"name\": \"gone\"}}]"),
              HasSubstr("'add' is used before it is computed"));
  EXPECT_THAT(with("\"other\"", "\"another\""), HasSubstr("'other' is missing"));
  EXPECT_THAT(with("{\"as_int\": 2}", "{\"as_name\": \"s0\"}"), HasSubstr("symbolic"));
  EXPECT_THAT(with("{\"as_int\": 3}", "{\"as_int\": 4}"), HasSubstr("node 'add'"));
  EXPECT_THAT(with("{\"as_int\": 2}", "{\"as_int\": -2}"), HasSubstr("input 'x'"));
  EXPECT_THAT(with("\"relu\"}}}}", "\"nothing\"}}}}"), HasSubstr("'nothing' is not computed"));
}

TEST(ImportModel, AnOperatorInPlaceChangesItsOperand) {
  // The result of relu_ is not used, but its operand is.
  const std::string result_of_relu = R"({"as_tensor": {"name": "relu"}}}}]}})";
  const std::string result_of_add = R"({"as_tensor": {"name": "add"}}}}]}})";
  const std::string text = Replaced(SmallProgram(8, "aten.relu_.default"), result_of_relu,
                                    result_of_add);
  const auto model = ImportText(text);
  ASSERT_TRUE(model.has_value()) << ErrorOf(model);
  EXPECT_EQ(model->operators.at("aten.relu_.default"), 1);
  // An input is the caller's.
  const std::string of_input = Replaced(SmallProgram(8, "aten.relu_.default"),
                                        R"("arg": {"as_tensor": {"name": "add"}}})",
                                        R"("arg": {"as_tensor": {"name": "x"}}})");
  EXPECT_THAT(ErrorOf(ImportText(of_input)), HasSubstr("changes an input"));
}

/// A chain of n additions, as a program.
std::string Chain(int n) {
  const std::string meta = R"({"dtype": 7, "sizes": [{"as_int": 8}]})";
  std::string nodes;
  std::string metas = "\"v0\": " + meta;
  for (int i = 0; i < n; ++i) {
    nodes += fmt::format(
        R"({}{{"target": "torch.ops.aten.add.Tensor", "inputs": [
          {{"name": "self", "arg": {{"as_tensor": {{"name": "v{}"}}}}}},
          {{"name": "other", "arg": {{"as_int": 1}}}}],
          "outputs": [{{"as_tensor": {{"name": "v{}"}}}}]}})",
        i > 0 ? "," : "", i, i + 1);
    metas += fmt::format(", \"v{}\": {}", i + 1, meta);
  }
  return R"({"graph_module": {"graph": {"nodes": [)" + nodes + R"(], "tensor_values": {)" + metas +
         R"(}}, "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor":
    {"name": "v0"}}}}], "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "v)" +
         std::to_string(n) + R"("}}}}]}}, "schema_version": {"major": 8, "minor": 1}})";
}

TEST(ImportModel, AHundredThousandNodesAreRead) {
  const std::string text = Chain(100'000);
  const auto start = std::chrono::steady_clock::now();
  const auto model = ImportText(text);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(model.has_value()) << ErrorOf(model);
  EXPECT_EQ(model->graph.nodes().size(), 100'001U);
  EXPECT_LT(taken.count(), 60);  // 12 s on a busy machine; the square would take minutes
}

TEST(ImportModel, JsonWithWeightsBesideItIsRead) {
  const TemporaryDirectory folder;
  const Path json = folder.path() / "model.json";
  ASSERT_TRUE(WriteFileAtomic(json, SmallProgram()));
  EXPECT_FALSE(ImportModel(json)->inputs[1].place.has_value());
  const Path weights = folder.path() / "data" / "weights";
  ASSERT_TRUE(WriteFileAtomic(weights / "model_weights_config.json", SmallConfig()));
  EXPECT_THAT(ErrorOf(ImportModel(json)), HasSubstr("weight_0' is missing"));
  ASSERT_TRUE(WriteFileAtomic(weights / "weight_0", std::string(24, '\0')));
  EXPECT_TRUE(ImportModel(json)->inputs[1].place.has_value());
}

}  // namespace
}  // namespace atunner::importers
