#include "atunner/tune/restricted_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

using testing::HasSubstr;

/// a in 0 … 9, b in 0 … 9, a <= b; starts with (2, 7).
class Pairs : public ScheduleTemplate {
 public:
  Pairs() {
    for (const char* name : {"a", "b"}) {
      space_.parameters.push_back({name, {}, ""});
      for (int64_t i = 0; i < 10; ++i) space_.parameters.back().values.emplace_back(i);
    }
    space_.constraints.push_back({Expr::MustParse("a <= b"), ""});
    spec_.name = "pairs";
    spec_.dims = {{"n", 5}};
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {{int64_t{2}, int64_t{7}}}; }
  Result<RenderedKernel> Render(const Configuration&) const override {
    return Invalid("not asked for");
  }

 private:
  KernelSpec spec_;
  ParameterSpace space_;
};

Result<RestrictedSchedule> Restrict(const ScheduleTemplate& inner,
                                    std::vector<std::string> conditions) {
  return RestrictedSchedule::Make(inner, conditions);
}

TEST(RestrictedSchedule, StartsWhereTheTemplateStartsIfThatIsLeft) {
  const Pairs pairs;
  EXPECT_EQ(Restrict(pairs, {"b > n"})->Default(), pairs.Default());
}

TEST(RestrictedSchedule, StartsNearTheTemplatesStartOtherwise) {
  const Pairs pairs;
  const auto restricted = Restrict(pairs, {"a == 4", "b != 9"});
  EXPECT_EQ(restricted->Default(), (Configuration{{int64_t{4}, int64_t{7}}}));
  EXPECT_FALSE(restricted->space().Allows({{int64_t{4}, int64_t{9}}}, pairs.spec().dims).value());
  EXPECT_FALSE(restricted->space().Allows({{int64_t{4}, int64_t{3}}}, pairs.spec().dims).value())
      << "the template's own holds";
}

TEST(RestrictedSchedule, SaysWhatIsWrongWithACondition) {
  const Pairs pairs;
  EXPECT_THAT(Restrict(pairs, {"a >"}).error().ToString(), HasSubstr("expected a value"));
  EXPECT_THAT(Restrict(pairs, {"tile == 4"}).error().ToString(), HasSubstr("tile"));
  EXPECT_THAT(Restrict(pairs, {"a == 9 and b == 8"}).error().ToString(),
              HasSubstr("a == 9 and b == 8"));
}

}  // namespace
}  // namespace atunner
