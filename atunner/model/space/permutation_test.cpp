#include "atunner/model/space/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

using testing::HasSubstr;

std::vector<Value> Texts(std::initializer_list<const char*> texts) {
  std::vector<Value> values;
  for (const char* text : texts) values.emplace_back(std::string(text));
  return values;
}

TEST(Permutation, ListsEveryOrderOnceTheGivenOneFirst) {
  const auto parameter = MakePermutation("loops", Texts({"m", "n", "k"}));
  ASSERT_TRUE(parameter.has_value());
  EXPECT_EQ(parameter->values, Texts({"m,n,k", "m,k,n", "n,m,k", "n,k,m", "k,m,n", "k,n,m"}));
  for (size_t rank = 0; rank < 6; ++rank) EXPECT_EQ(RankOf(OrderAt(rank, 3)), rank);
  EXPECT_EQ(OrderAt(4, 3), (std::vector<size_t>{2, 0, 1}));
  EXPECT_EQ(ItemsOf("k,m,n"), (std::vector<std::string>{"k", "m", "n"}));
  EXPECT_EQ(OrdersOf(std::vector<Value>(Texts({"a", "b", "c", "d", "e", "f", "g"})))->size(),
            5040u);
}

TEST(Permutation, SaysWhatIsWrong) {
  EXPECT_THAT(MakePermutation("p", Texts({"m"})).error().ToString(), HasSubstr("2 to 7"));
  EXPECT_THAT(MakePermutation("p", Texts({"m", "m"})).error().ToString(), HasSubstr("twice"));
  EXPECT_THAT(MakePermutation("p", Texts({"m", "a,b"})).error().ToString(), HasSubstr("comma"));
  ParameterSpace space;
  space.parameters.push_back(MakePermutation("p", Texts({"m", "n"})).value());
  EXPECT_TRUE(space.Validate({}).has_value());
  std::swap(space.parameters[0].values[0], space.parameters[0].values[1]);
  EXPECT_THAT(space.Validate({}).error().ToString(), HasSubstr("orders of its items"));
}

TEST(Permutation, ExpressionsAskForPositions) {
  const Attributes values = {{"loops", std::string("k,m,n")}, {"axes", std::string("2,0,1")}};
  const auto of = [&](const char* text) {
    return Expr::MustParse(text).Evaluate(Bindings().Add(values));
  };
  EXPECT_EQ(of("position(loops, 'n')"), Value(int64_t{2}));
  EXPECT_EQ(of("position(axes, 0) < position(axes, 1)"), Value(true));
  EXPECT_THAT(of("position(loops, 'z')").error().ToString(), HasSubstr("'z' is not in"));
  EXPECT_FALSE(of("position(3, 3)").has_value());
}

TEST(Permutation, TravelsAsItsItems) {
  ParameterSpace space;
  space.parameters.push_back(MakePermutation("p", Texts({"m", "n", "k"})).value());
  const Json json = ToJson(space);
  EXPECT_FALSE(json["parameters"][0].contains("values"));
  EXPECT_EQ(FromJson<ParameterSpace>(json)->parameters[0].values, space.parameters[0].values);
  EXPECT_FALSE(FromJson<ParameterSpace>(
      ParseJson(R"({"parameters": [{"name": "p", "items": [1]}]})").value()));
}

ParameterSpace Conditional() {
  ParameterSpace space;
  Parameter stages{"stages", {int64_t{2}, int64_t{3}, int64_t{1}}, ""};
  stages.only_if = Expr::MustParse("mode == 'shared'");
  stages.otherwise = int64_t{1};
  space.parameters = {{"mode", Texts({"global", "shared"}), ""}, stages};
  return space;
}

TEST(ConditionalParameter, HasOneValueWhereItMeansNothing) {
  const ParameterSpace space = Conditional();
  ASSERT_TRUE(space.Validate({}).has_value());
  const auto allows = [&](const char* mode, int64_t stages) {
    return space.Allows({{std::string(mode), stages}}, {}).value();
  };
  EXPECT_TRUE(allows("shared", 3));
  EXPECT_TRUE(allows("shared", 1));
  EXPECT_TRUE(allows("global", 1));
  EXPECT_FALSE(allows("global", 3));
  const ParameterSpace again = FromJson<ParameterSpace>(ToJson(space)).value();
  EXPECT_EQ(*again.parameters[1].only_if, *space.parameters[1].only_if);
  EXPECT_EQ(again.parameters[1].Inactive(), Value(int64_t{1}));
}

TEST(ConditionalParameter, SaysWhatIsWrong) {
  ParameterSpace space = Conditional();
  space.parameters[1].otherwise = int64_t{7};
  EXPECT_THAT(space.Validate({}).error().ToString(), HasSubstr("inactive value 7"));
  space = Conditional();
  space.parameters[1].only_if = Expr::MustParse("stages > 1");
  EXPECT_THAT(space.Validate({}).error().ToString(), HasSubstr("the parameter itself"));
  space.parameters[1].only_if = Expr::MustParse("nobody > 1");
  EXPECT_THAT(space.Validate({}).error().ToString(), HasSubstr("nobody"));
  space.parameters[1].only_if = Expr::MustParse("mode == 'shared'");
  space.parameters[1].values.emplace_back(std::string("'\""));
  space.parameters[1].otherwise = std::string("'\"");
  EXPECT_THAT(space.Validate({}).error().ToString(), HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace atunner
