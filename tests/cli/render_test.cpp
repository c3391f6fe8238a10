#include "faces/cli/output/render.h"

#include <gtest/gtest.h>

namespace atunner::cli {
namespace {

TEST(Printable, KeepsTextAndLines) { EXPECT_EQ(Printable("a\tb\nc × 2 ≤ 3"), "a\tb\nc × 2 ≤ 3"); }

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(Printable("\033[31mred\r\a"), "\\x1b[31mred\\x0d\\x07");
  EXPECT_EQ(Printable("\x7f"), "\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");
}

}  // namespace
}  // namespace atunner::cli
