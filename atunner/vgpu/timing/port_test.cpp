#include "atunner/vgpu/timing/port.h"

#include <gtest/gtest.h>

namespace atunner::vgpu {
namespace {

TEST(Port, ServesOneAfterTheOther) {
  Port port;
  EXPECT_EQ(port.Take({0, 100}, 50), (Moment{50, 150}));
  EXPECT_EQ(port.Take({10, 10}, 50), (Moment{100, 60})) << "the second run's is free until 100";
  EXPECT_EQ(port.Take({500, 500}, 1), (Moment{501, 501}));
}

TEST(Port, EarlierRequestsTakeWhatIsLeft) {
  Port port;
  port.Take({100, 100}, 100);
  port.Take({300, 300}, 100);
  EXPECT_EQ(port.Take({50, 50}, 60)[0], 210) << "50 before the first, 10 after it";
  EXPECT_EQ(port.Take({0, 0}, 50)[0], 50);
  EXPECT_EQ(port.Take({0, 0}, 100)[0], 410) << "90 between the two, 10 after both";
  EXPECT_EQ(port.Take({0, 0}, 1)[0], 411);
}

TEST(Port, NothingTakesNoTime) {
  Port port;
  EXPECT_EQ(port.Take({7, 8}, 0), (Moment{7, 8}));
  port.Take({0, 0}, 20);
  EXPECT_EQ(port.Take({7, 30}, 0), (Moment{20, 30}));
}

TEST(Port, KnowsWhatIsStillToBeDone) {
  Port port;
  EXPECT_EQ(port.Backlog({0, 0}), (Moment{0, 0}));
  port.Take({0, 100}, 50);
  port.Take({200, 200}, 10);
  EXPECT_EQ(port.Backlog({20, 20}), (Moment{40, 60}));
  EXPECT_EQ(port.Backlog({205, 210}), (Moment{5, 0}));
}

}  // namespace
}  // namespace atunner::vgpu
