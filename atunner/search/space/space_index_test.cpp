#include "atunner/search/space/space_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "atunner/model/space/permutation.h"
#include "atunner/search/space/space_builder.h"

namespace atunner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

ParameterSpace SpaceOf(std::vector<Parameter> parameters,
                       std::initializer_list<const char*> constraints) {
  ParameterSpace space;
  space.parameters = std::move(parameters);
  for (const char* text : constraints) space.constraints.push_back({Expr::MustParse(text), ""});
  return space;
}

std::vector<Value> Range(int64_t first, int64_t last) {
  std::vector<Value> values;
  for (int64_t v = first; v <= last; ++v) values.emplace_back(v);
  return values;
}

Parameter RandomParameter(const std::string& name, Random& random) {
  Parameter parameter{name, {}, ""};
  const uint64_t kind = random.Below(5);
  const uint64_t count = 1 + random.Below(5);
  for (uint64_t v = 0; v < count; ++v) {
    const auto n = static_cast<int64_t>(v);
    if (kind == 0)
      parameter.values.emplace_back(std::string(1, static_cast<char>('p' + v)));
    else if (kind == 1)
      parameter.values.emplace_back(0.5 * static_cast<double>(n));
    else
      parameter.values.emplace_back(kind == 2 ? n : int64_t{1} << n);
  }
  return parameter;
}

/// Gives some parameters the condition that another one has one of its values.
void AddConditions(ParameterSpace& space, Random& random) {
  for (size_t p = 1; p < space.parameters.size(); ++p) {
    if (random.Below(4) != 0) continue;
    const Parameter& other = space.parameters[random.Below(p)];
    const std::string value = ToString(other.values[random.Below(other.values.size())]);
    const bool text = std::holds_alternative<std::string>(other.values[0]);
    space.parameters[p].only_if = Expr::MustParse(other.name +
                                                  " == " + (text ? "'" + value + "'" : value));
    if (random.Below(2)) space.parameters[p].otherwise = space.parameters[p].values.back();
  }
}

/// Up to seven parameters, some tied together, some on their own.
ParameterSpace RandomSpace(Random& random) {
  ParameterSpace space;
  const uint64_t parameters = 1 + random.Below(6);
  for (uint64_t p = 0; p < parameters; ++p)
    space.parameters.push_back(RandomParameter(std::string(1, static_cast<char>('a' + p)), random));
  const auto name = [&] { return space.parameters[random.Below(parameters)].name; };
  static constexpr const char* kForms[] = {"A == B or C == 1 or A != C", "not (A == 'q') or B != 2",
                                           "A in (1, 2, 'p', 0.5) or B in ('q', 4)",
                                           "A == C or not B"};
  static constexpr const char* kNumeric[] = {"A * B <= 8",
                                             "A + B + C <= N",
                                             "A <= B <= 8 or C == 2",
                                             "B == 0 or A % B == 0",
                                             "(A // 2 if B > 1 else A * 2) != C",
                                             "max(A, B) > min(B, C) or A == 1"};
  bool texts = false;
  for (const Parameter& parameter : space.parameters)
    texts |= std::holds_alternative<std::string>(parameter.values[0]);
  for (uint64_t c = 0; c < random.Below(4); ++c) {
    const std::string form = texts || random.Below(4) == 0
                                 ? kForms[random.Below(std::size(kForms))]
                                 : kNumeric[random.Below(std::size(kNumeric))];
    const std::string names[] = {name(), name(), name()};
    std::string text;
    for (char letter : form)
      text += letter >= 'A' && letter <= 'C' ? names[letter - 'A'] : std::string(1, letter);
    space.constraints.push_back({Expr::MustParse(text), ""});
  }
  AddConditions(space, random);
  return space;
}

std::vector<Configuration> BruteForce(const ParameterSpace& space, const Dims& dims) {
  std::vector<Configuration> valid;
  const auto total = static_cast<uint64_t>(space.CartesianSize());
  for (uint64_t i = 0; i < total; ++i) {
    Configuration one;
    uint64_t rest = i;
    for (const Parameter& parameter : space.parameters) {
      one.values.push_back(parameter.values[rest % parameter.values.size()]);
      rest /= parameter.values.size();
    }
    const auto allowed = space.Allows(one, dims);
    EXPECT_TRUE(allowed.has_value()) << allowed.error().ToString();
    if (allowed && *allowed) valid.push_back(one);
  }
  return valid;
}

std::string Text(const ParameterSpace& space) {
  std::string text;
  for (const Parameter& parameter : space.parameters) {
    text += parameter.name + ":";
    for (const Value& value : parameter.values) text += " " + ToString(value);
    text += "; ";
  }
  const std::vector<Constraint> constraints = space.AllConstraints().value();
  for (const Constraint& constraint : constraints) text += constraint.condition.text() + "; ";
  return text;
}

TEST(SpaceIndex, AgreesWithBruteForceAndRoundTrips) {
  Random random(11);
  const Dims dims{{"N", 9}};
  int constrained = 0;
  int empty = 0;
  for (int i = 0; i < 1500; ++i) {
    const ParameterSpace space = RandomSpace(random);
    SCOPED_TRACE(Text(space));
    const std::vector<Configuration> valid = BruteForce(space, dims);
    const auto index = SpaceIndex::Build(space, dims);
    ASSERT_EQ(index.has_value(), !valid.empty()) << (index ? "" : index.error().ToString());
    empty += valid.empty();
    if (!index) continue;
    constrained += index->size() < static_cast<uint64_t>(space.CartesianSize());
    ASSERT_EQ(index->size(), valid.size());
    std::set<uint64_t> seen;
    for (const Configuration& one : valid) {
      const uint64_t at = index->IndexOf(one);
      ASSERT_LT(at, index->size());
      ASSERT_EQ(index->At(at), one);
      ASSERT_TRUE(seen.insert(at).second);
    }
  }
  EXPECT_GT(constrained, 400);  // the constraints do something,
  EXPECT_GT(empty, 5);          // sometimes too much
}

/// More than one parameter differs, and all but one have a condition.
bool FollowsASwitch(const SpaceIndex& index, const std::vector<uint16_t>& a,
                    const std::vector<uint16_t>& b) {
  size_t differing = 0;
  size_t unconditional = 0;
  for (size_t p = 0; p < a.size(); ++p) {
    if (a[p] == b[p]) continue;
    ++differing;
    unconditional += !index.space().parameters[p].only_if;
  }
  return differing > 1 && unconditional <= 1;
}

TEST(SpaceIndex, NeighboursAgreeWithTheirDefinition) {
  Random random(5);
  for (int i = 0; i < 150; ++i) {
    const ParameterSpace space = RandomSpace(random);
    const auto index = SpaceIndex::Build(space, {{"N", 9}});
    if (!index) continue;
    const uint64_t centre = index->Draw(random);
    const auto here = index->PositionsAt(centre);
    std::vector<uint64_t> hamming;
    std::vector<uint64_t> strict;
    // by parameter and direction
    std::map<std::pair<size_t, bool>, std::pair<int, uint64_t>> nearest;
    for (uint64_t other = 0; other < index->size(); ++other) {
      const auto there = index->PositionsAt(other);
      size_t differing = 0;
      size_t which = 0;
      for (size_t p = 0; p < here.size(); ++p) {
        if (here[p] == there[p]) continue;
        ++differing;
        which = p;
      }
      if (differing != 1) continue;
      const int step = there[which] - here[which];
      hamming.push_back(other);
      if (std::abs(step) == 1) strict.push_back(other);
      const auto [at, fresh] = nearest.try_emplace({which, step > 0}, std::abs(step), other);
      if (!fresh && std::abs(step) < at->second.first) at->second = {std::abs(step), other};
    }
    std::vector<uint64_t> adjacent;
    for (const auto& [side, one] : nearest) adjacent.push_back(one.second);
    std::vector<uint64_t> one_away = index->Neighbours(centre, Neighbourhood::kHamming);
    ASSERT_EQ(std::set<uint64_t>(one_away.begin(), one_away.end()).size(), one_away.size());
    std::erase_if(one_away, [&](uint64_t at) {
      return FollowsASwitch(*index, here, index->PositionsAt(at));
    });
    ASSERT_THAT(one_away, UnorderedElementsAreArray(hamming));
    ASSERT_THAT(index->Neighbours(centre, Neighbourhood::kStrictlyAdjacent),
                UnorderedElementsAreArray(strict));
    ASSERT_THAT(index->Neighbours(centre, Neighbourhood::kAdjacent),
                UnorderedElementsAreArray(adjacent));
  }
}

TEST(SpaceIndex, OrdersAreNeighboursByOneSwap) {
  const std::vector<Value> items = {std::string("m"), std::string("n"), std::string("k"),
                                    std::string("b")};
  const auto index = SpaceIndex::Build(SpaceOf({MakePermutation("loops", items).value()},
                                               {"position(loops, 'k') > 0"}),
                                       {})
                         .value();
  EXPECT_EQ(index.size(), 18u);
  const auto shown = [&](const char* order, Neighbourhood kind) {
    std::vector<std::string> found;
    for (uint64_t at : index.Neighbours(index.IndexOf({{std::string(order)}}), kind))
      found.push_back(ToString(index.At(at).values[0]));
    return found;
  };
  EXPECT_THAT(shown("m,n,k,b", Neighbourhood::kHamming),
              UnorderedElementsAre("n,m,k,b", "b,n,k,m", "m,k,n,b", "m,b,k,n", "m,n,b,k"));
  EXPECT_THAT(shown("m,n,k,b", Neighbourhood::kAdjacent),
              UnorderedElementsAre("n,m,k,b", "m,k,n,b", "m,n,b,k"));
}

TEST(SpaceIndex, WhatASwitchTurnsOnOrOffFollowsIt) {
  Parameter stages{"stages", Range(2, 4), ""};
  stages.only_if = Expr::MustParse("mode == 1");
  Parameter depth{"depth", {int64_t{0}, int64_t{8}, int64_t{16}}, ""};
  depth.only_if = Expr::MustParse("stages > 2");
  // While it means something it is not 0.
  const auto index = SpaceIndex::Build(SpaceOf({{"mode", Range(0, 1), ""}, stages, depth},
                                               {"stages < 3 or depth > 0"}),
                                       {})
                         .value();
  ASSERT_EQ(index.size(), 1u + 1u + 2u * 2u);
  const auto neighbours = [&](int64_t m, int64_t s, int64_t d) {
    std::vector<std::string> found;
    for (uint64_t at : index.Neighbours(index.IndexOf({{m, s, d}}), Neighbourhood::kHamming))
      found.push_back(index.space().Describe(index.At(at)));
    return found;
  };
  EXPECT_THAT(neighbours(1, 4, 16),
              UnorderedElementsAre("mode=1, stages=4, depth=8", "mode=1, stages=3, depth=16",
                                   "mode=1, stages=2, depth=0", "mode=0, stages=2, depth=0"));
  EXPECT_THAT(neighbours(1, 2, 0),
              UnorderedElementsAre("mode=0, stages=2, depth=0", "mode=1, stages=3, depth=8",
                                   "mode=1, stages=4, depth=8"));
}

TEST(SpaceIndex, NearIsValidAndLeavesValidOnesAlone) {
  Random random(8);
  for (int i = 0; i < 200; ++i) {
    const auto index = SpaceIndex::Build(RandomSpace(random), {{"N", 9}});
    if (!index) continue;
    std::vector<double> anywhere;
    for (const Parameter& parameter : index->space().parameters)
      anywhere.push_back(random.Uniform(-1, static_cast<double>(parameter.values.size())));
    ASSERT_LT(index->Near(anywhere), index->size());
    const uint64_t at = index->Draw(random);
    const auto positions = index->PositionsAt(at);
    ASSERT_EQ(index->Near(std::vector<double>(positions.begin(), positions.end())), at);
  }
}

TEST(SpaceIndex, DrawsUniformlyAcrossTiedParameters) {
  const auto index = SpaceIndex::Build(SpaceOf({{"a", Range(1, 4), ""},
                                                {"b", Range(1, 3), ""},
                                                {"c", Range(1, 2), ""}},
                                               {"a != 4 or b == 1"}),
                                       {})
                         .value();
  ASSERT_EQ(index.size(), 20u);
  std::map<std::string, int> seen;
  Random random(3);
  for (int i = 0; i < 40000; ++i) ++seen[index.space().Describe(index.At(index.Draw(random)))];
  ASSERT_EQ(seen.size(), 20u);
  double chi = 0;
  for (const auto& [at, n] : seen) chi += (n - 2000.0) * (n - 2000.0) / 2000.0;
  EXPECT_LT(chi, 43.8);  // 0.1 % level at 19 degrees of freedom
}

TEST(SpaceIndex, NamesTheCulprit) {
  const auto build = [](std::initializer_list<const char*> constraints) {
    return SpaceIndex::Build(
               SpaceOf({{"a", Range(1, 2), ""}, {"b", Range(1, 9), ""}, {"c", Range(1, 9), ""}},
                       constraints),
               {})
        .error()
        .ToString();
  };
  EXPECT_THAT(build({"a < 10", "a > 5"}), AllOf(HasSubstr("'a > 5'"), Not(HasSubstr("a < 10"))));
  EXPECT_THAT(build({"b < 20", "b > 4", "c != 3", "b + a < 5"}),
              AllOf(HasSubstr("'b > 4' and 'b + a < 5'"), Not(HasSubstr("c != 3"))));
  EXPECT_THAT(build({"N > 1"}), HasSubstr("unknown name 'N'"));
  EXPECT_THAT(build({"1 > 2"}), HasSubstr("'1 > 2'"));
}

TEST(SpaceIndex, AConstraintThatCannotBeComputedIsAnErrorUnlessRuledOut) {
  const std::vector<Parameter> parameters{{"a", Range(0, 3), ""}, {"b", Range(0, 3), ""}};
  EXPECT_THAT(SpaceIndex::Build(SpaceOf(parameters, {"a % b == 0"}), {}).error().ToString(),
              HasSubstr("a % b == 0"));
  // The order of the constraints plays no part.
  EXPECT_EQ(SpaceIndex::Build(SpaceOf(parameters, {"a % b == 0", "b > 0"}), {})->size(), 8u);
  EXPECT_EQ(SpaceIndex::Build(SpaceOf(parameters, {"b == 0 or a % b == 0"}), {})->size(), 12u);
}

TEST(SpaceIndex, HugeSpacesAreNumberedAndDrawn) {
  std::vector<Parameter> parameters;
  for (char group = 'a'; group <= 'd'; ++group) {
    for (char digit = '1'; digit <= '3'; ++digit)
      parameters.push_back({{group, digit}, Range(1, 12), ""});
  }
  const ParameterSpace space = SpaceOf(parameters, {"a1 * a2 * a3 <= 300", "b1 * b2 * b3 <= 300",
                                                    "c1 * c2 * c3 <= 300", "d1 * d2 * d3 <= 300"});
  const auto index = SpaceIndex::Build(space, {}).value();
  uint64_t one_group = 0;
  for (int a = 1; a <= 12; ++a) {
    for (int b = 1; b <= 12; ++b) {
      for (int c = 1; c <= 12; ++c) one_group += a * b * c <= 300;
    }
  }
  EXPECT_EQ(index.size(), one_group * one_group * one_group * one_group);
  EXPECT_GT(space.CartesianSize(), 1'000'000'000'000);
  EXPECT_LT(index.diagram().edge_count(), 10'000u);
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t at = index.Draw(random);
    ASSERT_TRUE(space.Allows(index.At(at), {}).value());
    ASSERT_EQ(index.IndexOf(index.At(at)), at);
  }
}

TEST(SpaceIndex, TooTangledASpaceIsRefused) {
  std::vector<Parameter> parameters;
  std::string sum = "0";
  for (int p = 0; p < 12; ++p) {
    parameters.push_back({"p" + std::to_string(p), Range(1, 12), ""});
    sum += " + p" + std::to_string(p) + " * " + std::to_string(13 * p + 1) + " ** 2";
  }
  const ParameterSpace space = SpaceOf(parameters, {(sum + " != 7").c_str()});
  EXPECT_THAT(BuildDiagram(space, {}, {.edges = 100'000}).error().ToString(),
              HasSubstr("tie too many values together"));
}

/// 19^16 combinations, 3e20. The sum names the parameters in another order than the space lists
/// them.
TEST(SpaceIndex, ASumInAnyOrderIsBuiltAtOnce) {
  std::vector<Parameter> parameters;
  std::string listed, reversed;
  for (int p = 0; p < 16; ++p) {
    const std::string name = "p" + std::to_string(p);
    parameters.push_back({name, Range(1, 19), ""});
    listed += (p > 0 ? " + " : "") + name;
    reversed = name + (p > 0 ? " + " : "") + reversed;
  }
  const auto a = SpaceIndex::Build(SpaceOf(parameters, {(listed + " <= 100").c_str()}), {});
  const auto b = SpaceIndex::Build(SpaceOf(parameters, {(reversed + " <= 100").c_str()}), {});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->size(), b->size());
  EXPECT_LT(b->diagram().edge_count(), 100'000u);
}

/// Whatever limit ends it: one message that names the parameter and the states.
TEST(SpaceIndex, EachLimitOfTheConstructionHasAClearMessage) {
  std::vector<Parameter> parameters;
  std::string sum = "0";
  for (int p = 0; p < 12; ++p) {
    parameters.push_back({"p" + std::to_string(p), Range(1, 12), ""});
    sum += " + p" + std::to_string(p) + " * " + std::to_string(13 * p + 1) + " ** 2";
  }
  const ParameterSpace space = SpaceOf(parameters, {(sum + " == 7").c_str()});
  for (const BuildLimits& limits :
       {BuildLimits{.edges = 20'000}, BuildLimits{.cells = 20'000}, BuildLimits{.steps = 20'000}}) {
    const auto diagram = BuildDiagram(space, {}, limits);
    ASSERT_FALSE(diagram);
    EXPECT_THAT(diagram.error().ToString(),
                AllOf(HasSubstr("tie too many values together"), HasSubstr("parameter 'p"),
                      HasSubstr("different states")));
  }
}

TEST(SpaceIndex, FromListHoldsExactlyTheList) {
  const ParameterSpace space = SpaceOf({{"a", Range(0, 4), ""}, {"b", Range(0, 4), ""}}, {});
  const std::vector<uint16_t> rows = {3, 1, 0, 0, 3, 1, 4, 2, 0, 4};
  const auto index = SpaceIndex::FromList(space, rows).value();
  EXPECT_EQ(index.size(), 4u);
  for (size_t i = 0; i < rows.size(); i += 2)
    EXPECT_LT(index.IndexOfPositions(std::span(rows).subspan(i, 2)), index.size());
  EXPECT_EQ(index.IndexOf({{int64_t{1}, int64_t{1}}}), index.size());
  EXPECT_FALSE(SpaceIndex::FromList(space, {}).has_value());
  EXPECT_FALSE(SpaceIndex::FromList(space, std::vector<uint16_t>{9, 0}).has_value());
}

TEST(SpaceIndex, ASpaceWithoutParametersHasOneConfiguration) {
  EXPECT_EQ(SpaceIndex::Build({}, {})->size(), 1u);
  EXPECT_TRUE(SpaceIndex::Build({}, {})->At(0).values.empty());
}

}  // namespace
}  // namespace atunner
