#include "atunner/intake/value_list.h"

#include <gtest/gtest.h>

namespace atunner {
namespace {

std::string Shown(std::string_view text) {
  const auto values = ParseValueList(text);
  if (!values) return "error: " + values.error().what;
  std::string shown;
  for (const Value& value : *values) shown += (shown.empty() ? "" : ",") + ToString(value);
  return shown;
}

TEST(ValueList, ReadsPythonsLists) {
  EXPECT_EQ(Shown("[1, 2, 4]"), "1,2,4");
  EXPECT_EQ(Shown("1, 2, 4"), "1,2,4");
  EXPECT_EQ(Shown("[32 * i for i in range(1, 5)]"), "32,64,96,128");
  EXPECT_EQ(Shown("[1] + [2 * i for i in range(1, 4)]"), "1,2,4,6");
  EXPECT_EQ(Shown("[1, 2, 4, 8, 16] + list(range(32, 128+1, 32))"), "1,2,4,8,16,32,64,96,128");
  EXPECT_EQ(Shown("[2**i for i in range(0, 6)]"), "1,2,4,8,16,32");
  EXPECT_EQ(Shown("[i for i in range(10) if i % 3 == 0]"), "0,3,6,9");
  EXPECT_EQ(Shown("range(5, 0, -2)"), "5,3,1");
  EXPECT_EQ(Shown("['a', 'b c']"), "a,b c");
  EXPECT_EQ(Shown("[0.5, 1]"), "0.5,1");
  EXPECT_EQ(Shown("linspace(0.1, 0.5, 5)"), "0.1,0.2,0.3,0.4,0.5");
  EXPECT_EQ(Shown("geomspace(1, 256, 5)"), "1,4,16,64,256");
  EXPECT_EQ(Shown("[0] + geomspace(0.01, 1, 3)"), "0,0.01,0.1,1.0");
}

TEST(ValueList, SaysWhatIsWrong) {
  EXPECT_EQ(Shown(""), "error: an empty list");
  EXPECT_EQ(Shown("[x]").substr(0, 6), "error:");
  EXPECT_EQ(Shown("range(0, 1, 0)"), "error: range() with a step of 0");
  EXPECT_EQ(Shown("range(0, 100000000)"), "error: a list of more than 65536 values");
  EXPECT_EQ(Shown("[i for i]"), "error: 'for' without 'in'");
  EXPECT_EQ(Shown("foo[1]").substr(0, 6), "error:");
  EXPECT_EQ(Shown("geomspace(0, 1, 3)"), "error: a logarithmic range is of positive numbers");
  EXPECT_EQ(Shown("linspace(0, 1, 1)"), "error: a range has 2 to 65535 values");
  EXPECT_EQ(Shown("linspace(0, 1, 2.5)").substr(0, 6), "error:");
  EXPECT_EQ(Shown("linspace('a', 1, 2)").substr(0, 6), "error:");
}

TEST(ValueList, SplitsOutsideBrackets) {
  EXPECT_EQ(SplitOutsideBrackets("a, f(b, c), 'x,y',", ','),
            (std::vector<std::string>{"a", "f(b, c)", "'x,y'"}));
  EXPECT_TRUE(SplitOutsideBrackets("  ", ',').empty());
}

}  // namespace
}  // namespace atunner
