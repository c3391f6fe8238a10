#include "atunner/model/expr/expr_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "atunner/base/random.h"

namespace atunner {
namespace {

std::string RandomText(Random& random, int depth) {
  const auto pick = [&](std::initializer_list<const char*> items) {
    return std::string(items.begin()[random.Below(items.size())]);
  };
  if (depth == 0)
    return pick(
        {"a", "b", "c", "s", "0", "1", "2", "7", "-3", "0.5", "2.0", "'x'", "''", "True", "N"});
  const auto sub = [&] {
    return RandomText(random, depth - 1 - static_cast<int>(random.Below(2)) * (depth > 1));
  };
  switch (random.Below(7)) {
    case 0:
      return "(" + sub() + pick({" and ", " or ", " && ", " || "}) + sub() + ")";
    case 1:
      return "(" + sub() + pick({" < ", " <= ", " == ", " != ", " > ", " >= "}) + sub() +
             (random.Below(3) ? "" : pick({" < ", " >= "}) + sub()) + ")";
    case 2:
      return "(" + sub() + " if " + sub() + " else " + sub() + ")";
    case 3:
      return "(" + sub() + pick({" in (", " not in ("}) + sub() + ", " + sub() + "))";
    case 4:
      if (random.Below(3) == 0) return "(" + pick({"not ", "-", "~"}) + sub() + ")";
      return pick({"abs(", "ceil(", "floor(", "round(", "int(", "float(", "bool(", "sqrt(",
                   "log2("}) +
             sub() + ")";
    case 5:
      if (random.Below(4) == 0)
        return "position(" + pick({"'x,2,0.5'", "s", "a"}) + ", " + sub() + ")";
      return pick({"min(", "max(", "ceil_div(", "pow("}) + sub() + ", " + sub() + ")";
    default:
      return "(" + sub() +
             pick({" + ", " - ", " * ", " / ", " // ", " % ", " ** ", " & ", " | ", " ^ ", " << ",
                   " >> "}) +
             sub() + ")";
  }
}

void ExpectSame(const Expr& expr, const ExprProgram& program, const Cell& cell,
                const Attributes& values) {
  const auto expected = expr.Evaluate(Bindings().Add(values));
  SCOPED_TRACE(expr.text());
  ASSERT_EQ(cell.IsError(), !expected.has_value())
      << (expected ? ToString(*expected) : expected.error().ToString());
  if (!expected) return;
  ASSERT_EQ(ExprProgram::Truthy(cell, program), Truthy(*expected));
  if (cell.kind == Cell::Kind::kInteger)
    ASSERT_EQ(static_cast<double>(cell.integer), ToDouble(*expected));
  if (cell.kind == Cell::Kind::kReal && !std::isnan(cell.real))
    ASSERT_EQ(cell.real, ToDouble(*expected));
  ASSERT_EQ(cell.kind == Cell::Kind::kReal, std::holds_alternative<double>(*expected));
}

TEST(ExprProgram, AgreesWithTheEvaluatorOnRandomExpressions) {
  Random random(4);
  int errors = 0;
  int compared = 0;
  for (int round = 0; round < 6000; ++round) {
    const Expr expr = Expr::MustParse(RandomText(random, 1 + static_cast<int>(random.Below(4))));
    ExprProgram program;
    const char* names[] = {"a", "b", "c", "s"};
    for (const char* name : names) program.Variable(name);
    program.Bind("N", int64_t{12});
    const auto root = program.Add(expr.root());
    ASSERT_TRUE(root.has_value()) << expr.text() << root.error().ToString();
    for (int k = 0; k < 4; ++k) {
      Attributes values{{"a", static_cast<int64_t>(random.Below(9)) - 2},
                        {"b", static_cast<int64_t>(1) << random.Below(40)},
                        {"c", random.Below(2) ? Value(0.25 * static_cast<double>(random.Below(9)))
                                              : Value(false)},
                        {"s", random.Below(2) ? std::string("x") : std::string("")},
                        {"N", int64_t{12}}};
      std::vector<Cell> cells = program.initial_cells();
      for (const char* name : names)
        cells[program.Variable(name)] = program.CellOf(values.at(name));
      for (const auto& instruction : program.instructions()) program.Run(instruction, cells);
      ExpectSame(expr, program, cells[*root], values);
      if (HasFatalFailure()) return;
      errors += cells[*root].IsError();
      ++compared;
    }
  }
  EXPECT_GT(errors, 1000);  // both outcomes are common
  EXPECT_GT(compared - errors, 5000);
}

TEST(ExprProgram, SharesSubexpressionsAndFoldsConstants) {
  ExprProgram program;
  program.Variable("x");
  program.Variable("y");
  program.Bind("N", int64_t{64});
  ASSERT_TRUE(program.Add(Expr::MustParse("x * y <= N * 16").root()).has_value());
  EXPECT_EQ(program.instructions().size(), 2u);
  ASSERT_TRUE(program.Add(Expr::MustParse("x * y >= 32").root()).has_value());
  EXPECT_EQ(program.instructions().size(), 3u);
}

TEST(ExprProgram, RefusesUnknownNamesAndFunctions) {
  ExprProgram program;
  program.Variable("x");
  EXPECT_THAT(program.Add(Expr::MustParse("x + y").root()).error().ToString(),
              testing::HasSubstr("'y'"));
  EXPECT_THAT(program.Add(Expr::MustParse("sinh(x)").root()).error().ToString(),
              testing::HasSubstr("sinh"));
}

}  // namespace
}  // namespace atunner
