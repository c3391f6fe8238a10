#include "atunner/importers/divide_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace atunner::importers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A program of nodes over float32[2, 3]. Each node's operands are names of values.
struct TestProgram {
  ModelFile file;

  void Input(const std::string& name, InputKind kind = InputKind::kUser) {
    const std::string qualified = kind == InputKind::kUser ? "" : "layer." + name;
    file.program.inputs.push_back({kind, name, qualified});
    Tensor(name);
  }
  void Node(const std::string& target, const std::vector<std::string>& arguments,
            const std::vector<std::string>& operands, const std::vector<std::string>& results) {
    ProgramNode node{target, {}, {}};
    for (size_t i = 0; i < operands.size(); ++i)
      node.arguments.push_back({arguments[i], TensorRef{operands[i]}});
    for (const std::string& result : results) {
      node.outputs.emplace_back(TensorRef{result});
      Tensor(result);
    }
    file.program.nodes.push_back(node);
  }
  void Tensor(const std::string& name) {
    file.program.tensors[name] = {ScalarType{DType::kFloat32}, {2, 3}};
  }
  Result<DividedModel> Divide() const { return DivideModel(file, "test"); }
};

/// r = relu(x + w); u, v = mystery(r); out = u * r, and v.
TestProgram Mysterious() {
  TestProgram program;
  program.Input("w", InputKind::kParameter);
  program.Input("x");
  program.Node("aten.add.Tensor", {"self", "other"}, {"x", "w"}, {"sum"});
  program.Node("aten.relu.default", {"self"}, {"sum"}, {"r"});
  program.Node("mine.mystery.default", {"self"}, {"r"}, {"u", "v"});
  program.Node("aten.mul.Tensor", {"self", "other"}, {"u", "r"}, {"out"});
  program.Node("aten.unused.default", {"self"}, {"r"}, {"nowhere"});
  program.file.program.outputs = {{"out", OutputRole::kResult, ""}, {"v", OutputRole::kResult, ""}};
  return program;
}

TEST(DivideModel, TheModelIsDividedAroundUnknownOperators) {
  const auto model = Mysterious().Divide();
  ASSERT_TRUE(model) << model.error().ToString();
  ASSERT_EQ(model->steps.size(), 3u);
  const auto& first = std::get<ModelSegment>(model->steps[0]);
  EXPECT_THAT(first.inputs, ElementsAre("x", "w"));
  EXPECT_THAT(first.outputs, ElementsAre("r"));
  EXPECT_EQ(first.graph.name(), "test_0");
  const auto& call = std::get<ExternCall>(model->steps[1]);
  EXPECT_EQ(call.target, "mine.mystery.default");
  EXPECT_THAT(call.reads, ElementsAre("r"));
  EXPECT_THAT(call.writes, ElementsAre("u", "v"));
  const auto& second = std::get<ModelSegment>(model->steps[2]);
  EXPECT_THAT(second.inputs, ElementsAre("u", "r"));
  EXPECT_THAT(second.outputs, ElementsAre("out"));
  EXPECT_EQ(model->inputs[0].value.name, "x") << "inputs of users come first";
  EXPECT_EQ(model->externs.size(), 2u);
  ASSERT_EQ(model->notes.size(), 1u);
  EXPECT_THAT(model->notes[0], HasSubstr("mine.mystery.default (node 'u')"));
}

TEST(DivideModel, WithoutUnknownOperatorsThereIsOneSegment) {
  TestProgram program;
  program.Input("x");
  program.Node("aten.relu.default", {"self"}, {"x"}, {"r"});
  program.Node("aten.neg.default", {"self"}, {"r"}, {"out"});
  program.file.program.outputs = {{"out", OutputRole::kResult, ""},
                                  {"r", OutputRole::kResult, ""},
                                  {"x", OutputRole::kResult, ""}};
  const auto model = program.Divide();
  ASSERT_TRUE(model) << model.error().ToString();
  ASSERT_EQ(model->steps.size(), 1u);
  EXPECT_EQ(std::get<ModelSegment>(model->steps[0]).graph.name(), "test");
  EXPECT_THAT(std::get<ModelSegment>(model->steps[0]).outputs, ElementsAre("r", "out"));
}

TEST(DivideModel, SegmentsAreAsFewAsTheChainsOfUnknownOperators) {
  TestProgram program;
  program.Input("x");
  // Two branches with one unknown operator each, and knowns before and after them.
  for (const std::string branch : {"a", "b"}) {
    program.Node("aten.relu.default", {"self"}, {"x"}, {branch + "1"});
    program.Node("mine.mystery.default", {"self"}, {branch + "1"}, {branch + "2"});
    program.Node("aten.neg.default", {"self"}, {branch + "2"}, {branch + "3"});
  }
  program.Node("aten.add.Tensor", {"self", "other"}, {"a3", "b3"}, {"out"});
  program.file.program.outputs = {{"out", OutputRole::kResult, ""}};
  const auto model = program.Divide();
  ASSERT_TRUE(model) << model.error().ToString();
  EXPECT_EQ(model->steps.size(), 4u);  // segment, two calls, segment
}

/// Attention that a step keeps whole, between a product of x and a product of the result. `late`
/// is made of an input, and the last segment alone uses it.
TestProgram WithAttention() {
  TestProgram program;
  for (const char* name : {"x", "w"}) program.Input(name);
  program.Node("aten.relu.default", {"self"}, {"x"}, {"q"});
  program.Node("aten.neg.default", {"self"}, {"x"}, {"k"});
  program.Node("aten.abs.default", {"self"}, {"x"}, {"v"});
  program.Node("aten.exp.default", {"self"}, {"w"}, {"late"});
  program.Node("atunner.attention.default", {"query", "key", "value"}, {"q", "k", "v"}, {"y"});
  program.file.program.nodes.back().arguments.push_back({"is_causal", true});
  program.file.program.nodes.back().arguments.push_back({"scale", 0.5});
  program.Node("aten.mul.Tensor", {"self", "other"}, {"y", "late"}, {"out"});
  for (auto& [name, meta] : program.file.program.tensors) meta.sizes = {1, 2, 4, 8};
  program.file.program.outputs = {{"out", OutputRole::kResult, ""}};
  return program;
}

TEST(DivideModel, AttentionThatIsKeptWholeIsASegmentOfItsOwn) {
  const auto model = WithAttention().Divide();
  ASSERT_TRUE(model) << model.error().ToString();
  ASSERT_EQ(model->steps.size(), 3u);
  const auto& whole = std::get<ModelSegment>(model->steps[1]);
  ASSERT_TRUE(whole.library.has_value());
  EXPECT_EQ(whole.library->name, "attention_gqa");
  const std::vector<int64_t> shape = {1, 2, 4, 8};
  EXPECT_THAT(whole.library->shapes, ElementsAre(shape, shape));
  EXPECT_EQ(whole.library->attributes.at("causal"), Value(true));
  EXPECT_EQ(whole.library->attributes.at("scale"), Value(0.5));
  EXPECT_THAT(whole.inputs, ElementsAre("q", "k", "v"));
  EXPECT_THAT(whole.outputs, ElementsAre("y"));
}

TEST(DivideModel, WhatIsMadeOfInputsIsComputedWhereItIsUsed) {
  const auto model = WithAttention().Divide();
  ASSERT_TRUE(model) << model.error().ToString();
  EXPECT_THAT(std::get<ModelSegment>(model->steps[0]).outputs, ElementsAre("q", "k", "v"));
  EXPECT_THAT(std::get<ModelSegment>(model->steps[2]).inputs, ElementsAre("w", "y"));
}

TEST(DivideModel, ArgumentsOfCallsAreKept) {
  TestProgram program = Mysterious();
  ProgramNode& call = program.file.program.nodes[2];
  call.arguments.push_back({"dim", int64_t{-1}});
  call.arguments.push_back({"sizes", std::vector<int64_t>{2, 3}});
  call.arguments.push_back({"scale", 0.5});
  call.arguments.push_back({"low", -std::numeric_limits<double>::infinity()});
  call.arguments.push_back({"factors", std::vector<double>{1, std::nan("")}});
  call.arguments.push_back({"mode", std::string("mean")});
  call.arguments.push_back({"flag", true});
  call.arguments.push_back({"flags", std::vector<bool>{true, false}});
  call.arguments.push_back({"dtype", ScalarType{DType::kFloat16}});
  call.arguments.push_back({"others", TensorRefs{TensorRef{"sum"}, std::nullopt}});
  call.arguments.push_back({"nothing", std::monostate()});
  call.arguments.push_back({"device", Opaque{"as_device"}});
  const auto model = program.Divide();
  ASSERT_TRUE(model) << model.error().ToString();
  const auto& made = std::get<ExternCall>(model->steps[1]);
  EXPECT_THAT(made.reads, ElementsAre("r", "sum"));
  const auto json = nlohmann::json::parse(made.arguments);
  EXPECT_EQ(json, nlohmann::json::parse(R"([
    {"name": "self", "arg": {"as_tensor": {"name": "r"}}},
    {"name": "dim", "arg": {"as_int": -1}},
    {"name": "sizes", "arg": {"as_ints": [2, 3]}},
    {"name": "scale", "arg": {"as_float": 0.5}},
    {"name": "low", "arg": {"as_float": "-Infinity"}},
    {"name": "factors", "arg": {"as_floats": [1.0, "NaN"]}},
    {"name": "mode", "arg": {"as_string": "mean"}},
    {"name": "flag", "arg": {"as_bool": true}},
    {"name": "flags", "arg": {"as_bools": [true, false]}},
    {"name": "dtype", "arg": {"as_scalar_type": 6}},
    {"name": "others", "arg": {"as_optional_tensors":
       [{"as_tensor": {"name": "sum"}}, {"as_none": true}]}},
    {"name": "nothing", "arg": {"as_none": true}}])"));
}

TEST(DivideModel, MistakesAreNamed) {
  TestProgram in_place = Mysterious();
  in_place.file.program.nodes[2].target = "mine.mystery_.default";
  EXPECT_THAT(in_place.Divide().error().ToString(), HasSubstr("works in place"));
  TestProgram no_tensor = Mysterious();
  no_tensor.file.program.nodes[2].outputs[1].reset();
  no_tensor.file.program.outputs.pop_back();
  EXPECT_THAT(no_tensor.Divide().error().ToString(), HasSubstr("a result that is no tensor"));
  TestProgram no_meta = Mysterious();
  no_meta.file.program.tensors.erase("u");
  EXPECT_THAT(no_meta.Divide().error().ToString(), HasSubstr("'u' has no tensor_values"));
  TestProgram missing = Mysterious();
  missing.file.has_weights = true;
  EXPECT_THAT(missing.Divide().error().ToString(), HasSubstr("weights are missing: layer.w"));
  TestProgram twice = Mysterious();
  twice.Input("x");
  EXPECT_THAT(twice.Divide().error().ToString(), HasSubstr("two inputs"));
  TestProgram unknown;
  unknown.Input("x");
  unknown.Node("mine.mystery.default", {"self"}, {"x"}, {"u"});
  unknown.file.program.outputs = {{"u", OutputRole::kResult, ""}};
  EXPECT_THAT(unknown.Divide().error().ToString(), HasSubstr("no operator of the model is known"));
}

}  // namespace
}  // namespace atunner::importers
