#include "atunner/capture/reachable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/capture/map_memory_test.h"

namespace atunner::capture {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kBase = 0x1000;

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Reach : public testing::Test {
 protected:
  Reach() : reachable_(memory_) {
    memory_.buffers = {{kBase, BytesOf<float>({1, 2, 3, 4})},
                       {kBase + 0x100, BytesOf<uint64_t>({kBase + 0x200, 5})},
                       {kBase + 0x200, BytesOf<int>({7, 8})}};
  }

  MapMemory memory_;
  Reachable reachable_;
};

TEST_F(Reach, PointersInMemoryAreFollowed) {
  reachable_.AddParameter(BytesOf<uint64_t>({kBase + 0x108}), Element::kUnknown);
  ASSERT_TRUE(reachable_.Take(1000));
  EXPECT_THAT(reachable_.before(),
              ElementsAre(BytesOf<uint64_t>({kBase + 0x200, 5}), BytesOf<int>({7, 8})));
}

TEST_F(Reach, TypesAreThoseOfTheParameters) {
  reachable_.AddParameter(BytesOf<uint64_t>({kBase + 4}), Element::kFloat);
  reachable_.AddParameter(BytesOf<uint64_t>({kBase + 0x200}), Element::kExact);
  reachable_.AddParameter(BytesOf<uint64_t>({kBase + 0x100}), Element::kUnknown);
  reachable_.AddParameter(BytesOf<int>({3}), Element::kUnknown);
  ASSERT_TRUE(reachable_.Take(1000));
  EXPECT_EQ(reachable_.element(0), Element::kFloat);
  EXPECT_EQ(reachable_.element(1), Element::kExact) << "also reached from memory";
  reachable_.AddParameter(BytesOf<uint64_t>({kBase}), Element::kDouble);
  EXPECT_EQ(reachable_.element(0), Element::kUnknown) << "two declared types";
}

TEST_F(Reach, AStructureTellsNoType) {
  reachable_.AddParameter(BytesOf<uint64_t>({9, kBase}), Element::kFloat);
  ASSERT_TRUE(reachable_.Take(1000));
  EXPECT_EQ(reachable_.element(0), Element::kUnknown);
}

TEST_F(Reach, TooMuchIsRefused) {
  reachable_.AddParameter(BytesOf<uint64_t>({kBase}), Element::kFloat);
  EXPECT_THAT(reachable_.Take(15).error().ToString(), HasSubstr("may reach more than"));
}

TEST_F(Reach, OnlyWhatDiffersIsWritten) {
  reachable_.AddParameter(BytesOf<uint64_t>({kBase}), Element::kFloat);
  reachable_.AddRange(kBase + 0x200, 8);
  ASSERT_TRUE(reachable_.Take(1000));
  memory_.buffers[kBase] = BytesOf<float>({1, 2, 3, 5});
  const auto present = reachable_.Contents();
  ASSERT_TRUE(present);
  ASSERT_TRUE(reachable_.Put(reachable_.before(), *present));
  EXPECT_EQ(memory_.buffers[kBase], BytesOf<float>({1, 2, 3, 4}));
  EXPECT_THAT(memory_.written, ElementsAre(kBase));
}

TEST_F(Reach, AllBuffersHaveToAgree) {
  reachable_.AddParameter(BytesOf<uint64_t>({kBase}), Element::kFloat);
  reachable_.AddParameter(BytesOf<uint64_t>({kBase + 0x200}), Element::kExact);
  ASSERT_TRUE(reachable_.Take(1000));
  const std::vector<std::string> original{BytesOf<float>({9, 2, 3, 4}), BytesOf<int>({7, 9})};
  std::vector<std::string> tuned = original;
  EXPECT_TRUE(CompareAll(reachable_, original, tuned, 1e-5).equal);
  tuned[0] = BytesOf<float>({9.00001f, 2, 3, 4});
  const Comparison close = CompareAll(reachable_, original, tuned, 1e-5);
  EXPECT_TRUE(close.accepted && !close.equal);
  tuned[1] = BytesOf<int>({7, 8});
  EXPECT_FALSE(CompareAll(reachable_, original, tuned, 1e-5).accepted);
}

}  // namespace
}  // namespace atunner::capture
