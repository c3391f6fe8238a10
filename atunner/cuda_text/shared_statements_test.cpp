#include "atunner/cuda_text/shared_statements.h"

#include <gtest/gtest.h>

namespace atunner::graph {
namespace {

// Statements that depend on outer coordinates, on the item or on a variable that changes stay in
// the loop, and so do all that depend on them.
TEST(SharedStatements, OthersStay) {
  const std::string stays =
      "      for (int lane = 0; lane < VEC; ++lane) {\n"
      "        const float x_0 = in_x[c0];\n"
      "        const float y_1 = x_0 * 2.0f;\n"
      "        const float z_2 = ahead[item];\n"
      "        float total_3 = 0.0f;\n"
      "        for (int r_4 = 0; r_4 < 3; ++r_4) {\n"
      "          const float w_5 = cos(c1);\n"
      "        }\n"
      "        const float u_6 = total_3;\n"
      "      }\n";
  EXPECT_EQ(WithShared(stays, 1).second, stays + "\n");
  const auto [shared, rest] = WithShared("        const float a_0 = cos(c1 + lane);\n", 1);
  EXPECT_EQ(rest, "        const float a_0 = of_a_0[lane];\n\n");
  EXPECT_EQ(shared,
            "    float of_a_0[VEC];\n#pragma unroll\n    for (int lane = 0; lane < VEC; ++lane) {\n"
            "        const float a_0 = cos(c1 + lane);\n        of_a_0[lane] = a_0;\n    }\n");
  EXPECT_EQ(WithShared("        const float a_0 = cos(c1 + lane);\n", 2).second,
            "        const float a_0 = cos(c1 + lane);\n\n");
}

}  // namespace
}  // namespace atunner::graph
