#include "atunner/vgpu/timing/loop_depths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner::vgpu {
namespace {

using testing::ElementsAre;

TEST(LoopDepths, CountsNestedLoops) {
  // 0 → 1 → 2 → 2, 2 → 1, 1 → 3
  EXPECT_THAT(LoopDepths({{1}, {2, 3}, {2, 1}, {}}), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(LoopDepths({}), ElementsAre());
}

TEST(LoopDepths, SeveralWaysBackAreOneLoop) {
  EXPECT_THAT(LoopDepths({{1}, {2, 3}, {1}, {1, 4}, {}}), ElementsAre(0, 1, 1, 1, 0));
}

// A wait as the assembler lays it: its slow half behind the kernel, which jumps back to what
// follows the wait. By the places of its branches everything between looked like a loop.
TEST(LoopDepths, RareCasesBehindTheProgramAreNoLoops) {
  // 0 waits (else 4), 1 and 2 follow, 3 exits; 4 tries again, then goes on at 1
  EXPECT_THAT(LoopDepths({{1, 4}, {2}, {3}, {}, {4, 1}}), ElementsAre(0, 0, 0, 0, 1));
  // The same within a loop: the slow half belongs to it.
  EXPECT_THAT(LoopDepths({{1}, {2, 5}, {3}, {1, 4}, {}, {5, 2}}), ElementsAre(0, 1, 1, 1, 0, 2));
}

TEST(LoopDepths, TakesWhatNothingLeadsTo) {
  EXPECT_THAT(LoopDepths({{}, {2}, {1, 3}, {}, {4}}), ElementsAre(0, 1, 1, 0, 1));
}

}  // namespace
}  // namespace atunner::vgpu
