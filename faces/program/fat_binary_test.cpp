#include "faces/program/fat_binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "faces/program/findings.h"

namespace atunner::program {
namespace {

using testing::HasSubstr;

TEST(FatBinary, TheNewestPtxThatFitsIsTaken) {
  const FatBinary binary{{{70, "old"}, {90, "new"}, {80, "middle"}}, {75}};
  EXPECT_EQ(ChoosePtx(binary, 90).value_or(""), "new");
  EXPECT_EQ(ChoosePtx(binary, 89).value_or(""), "middle");
  EXPECT_EQ(ChoosePtx(binary, 75).value_or(""), "old");
  const auto none = ChoosePtx(FatBinary{{}, {75}}, 80);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().ToString(), HasSubstr("machine code for 75"));
  EXPECT_THAT(none.error().hint, HasSubstr("compute_80"));
}

TEST(FatBinary, Lz4IsUnpacked) {
  // 4 literals and 8 bytes from 4 back, then 1 literal.
  const std::string packed(
      "\x44"
      "abcd"
      "\x04\x00"
      "\x10"
      "e",
      9);
  EXPECT_EQ(UnpackLz4(packed, 13).value_or(""), "abcdabcdabcde");
  // 20 literals (15 and 5), a match of 300 bytes from 1 back (4 + 15 + 255 + 26).
  const std::string literals(20, 'x');
  const std::string longer = "\xff\x05" + literals + std::string("\x01\x00\xff\x1a\x00", 5);
  EXPECT_EQ(UnpackLz4(longer, 320).value_or(""), std::string(320, 'x'));
}

TEST(FatBinary, DamagedLz4IsRefused) {
  const std::string packed(
      "\x44"
      "abcd"
      "\x04\x00"
      "\x10"
      "e",
      9);
  for (size_t cut = 1; cut < packed.size(); ++cut) EXPECT_FALSE(UnpackLz4(packed.substr(0, cut), 13)) << cut;
  EXPECT_FALSE(UnpackLz4(packed, 12));
  EXPECT_FALSE(UnpackLz4(packed, 14));
  EXPECT_FALSE(UnpackLz4(packed, ~size_t{0}));
  std::string far = packed;
  far[5] = 5;  // before the beginning
  EXPECT_FALSE(UnpackLz4(far, 13));
  far[5] = 0;
  EXPECT_FALSE(UnpackLz4(far, 13));
}

Hazard HazardAt(uint32_t line, uint64_t count) {
  Hazard hazard;
  hazard.kernel = "add";
  hazard.site = {"a.cu", line, 3, 4};
  hazard.other = Hazard::Site{"a.cu", 7, 1, 2};
  hazard.count = count;
  return hazard;
}

TEST(Findings, OfAllProcessesAreReadBackOnceEach) {
  Findings findings;
  EXPECT_TRUE(findings.Add(HazardAt(5, 2)));
  const std::string begun = DumpJson(ToJson(findings)) + "\n";
  EXPECT_FALSE(findings.Add(HazardAt(5, 3)));
  EXPECT_TRUE(findings.Add(HazardAt(6, 1)));
  EXPECT_TRUE(findings.AddError("wrong"));
  EXPECT_FALSE(findings.AddError("wrong"));
  findings.launches = 9;
  const std::string ended = DumpJson(ToJson(findings)) + "\n";
  const auto all = ReadReport(begun + ended + "{\"process\": ");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->launches, 9U);
  ASSERT_EQ(all->hazards.size(), 2U);
  EXPECT_EQ(all->hazards[0].count, 5U);
  EXPECT_EQ(all->hazards[1].site.line, 6U);
  EXPECT_EQ(all->hazards[1].other->line, 7U);
  EXPECT_EQ(all->errors, std::vector<std::string>{"wrong"});
}

}  // namespace
}  // namespace atunner::program
