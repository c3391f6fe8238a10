#include "faces/program/fat_binary.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
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

/// 4 literals and 8 bytes from 4 back, then 1 literal.
const std::string kPacked(
    "\x44"
    "abcd"
    "\x04\x00"
    "\x10"
    "e",
    9);

TEST(FatBinary, Lz4IsUnpacked) {
  EXPECT_EQ(UnpackLz4(kPacked, 13).value_or(""), "abcdabcdabcde");
  // 20 literals (15 and 5), a match of 300 bytes from 1 back (4 + 15 + 255 + 26).
  const std::string literals(20, 'x');
  const std::string longer = "\xff\x05" + literals + std::string("\x01\x00\xff\x1a\x00", 5);
  EXPECT_EQ(UnpackLz4(longer, 320).value_or(""), std::string(320, 'x'));
}

TEST(FatBinary, DamagedLz4IsRefused) {
  for (size_t cut = 1; cut < kPacked.size(); ++cut)
    EXPECT_FALSE(UnpackLz4(kPacked.substr(0, cut), 13)) << cut;
  EXPECT_FALSE(UnpackLz4(kPacked, 12));
  EXPECT_FALSE(UnpackLz4(kPacked, 14));
  EXPECT_FALSE(UnpackLz4(kPacked, ~size_t{0}));
  std::string far = kPacked;
  far[5] = 5;  // before the beginning
  EXPECT_FALSE(UnpackLz4(far, 13));
  far[5] = 0;
  EXPECT_FALSE(UnpackLz4(far, 13));
}

template <class T>
void Put(std::string& bytes, size_t at, T value) {
  std::memcpy(&bytes[at], &value, sizeof value);
}

/// One entry of PTX, as nvcc lays it out.
std::string Image(uint32_t arch, uint64_t flags, const std::string& payload,
                  uint64_t unpacked_bytes) {
  std::string image(16 + 64, '\0');
  Put(image, 0, kFatBinaryMagic);
  Put(image, 4, uint16_t{1});
  Put(image, 6, uint16_t{16});
  Put(image, 8, 64 + payload.size());
  Put(image, 16, uint16_t{1});
  Put(image, 16 + 4, uint32_t{64});
  Put(image, 16 + 8, payload.size());
  Put(image, 16 + 16, static_cast<uint32_t>(payload.size()));
  Put(image, 16 + 28, arch);
  Put(image, 16 + 40, flags);
  Put(image, 16 + 56, unpacked_bytes);
  return image + payload;
}

constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;

TEST(FatBinary, IsReadAndWhatIsDamagedIsRefused) {
  const std::string image = Image(86, kLz4, kPacked, 13);
  const auto binary = ReadFatBinary(image);
  ASSERT_TRUE(binary) << binary.error().ToString();
  ASSERT_EQ(binary->ptx.size(), 1U);
  EXPECT_EQ(binary->ptx[0].arch, 86);
  EXPECT_EQ(binary->ptx[0].text, "abcdabcdabcde");
  for (size_t cut = 0; cut < image.size(); ++cut)
    EXPECT_FALSE(ReadFatBinary(std::string_view(image).substr(0, cut)));
  std::string longer = image;
  Put(longer, 16 + 8, ~uint64_t{0} - 32);
  EXPECT_FALSE(ReadFatBinary(longer));
}

TEST(FatBinary, MachineCodeOfTheDevicesGenerationIsTaken) {
  std::string image = Image(86, kLz4, kPacked, 13);
  EXPECT_EQ(ChooseCubin(image.data(), 89).value_or("none"), "") << "it holds PTX";
  Put(image, 16, uint16_t{2});  // a cubin
  EXPECT_EQ(ChooseCubin(image.data(), 86).value_or(""), "abcdabcdabcde");
  EXPECT_EQ(ChooseCubin(image.data(), 89).value_or(""), "abcdabcdabcde");
  EXPECT_EQ(ChooseCubin(image.data(), 80).value_or("none"), "");
  EXPECT_EQ(ChooseCubin(image.data(), 90).value_or("none"), "");
}

TEST(FatBinary, WhatSaysThatItUnpacksToMoreThanItCanIsRefused) {
  for (const uint64_t bytes : {~uint64_t{0}, uint64_t{1} << 46, uint64_t{1} << 24}) {
    for (const uint64_t flags : {kLz4, kZstd})
      EXPECT_FALSE(ReadFatBinary(Image(90, flags, kPacked, bytes))) << bytes;
  }
  EXPECT_FALSE(ReadFatBinary(Image(90, kZstd, std::string(1 << 20, 'x'), uint64_t{1} << 34)));
}

/// An ELF file with one section, which holds the images.
std::string ProgramOf(const std::string& images) {
  const std::string names("\0.nv_fatbin\0", 12);
  std::string program(sizeof(Elf64_Ehdr), '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shnum = 2;
  header.e_shoff = sizeof header + names.size() + images.size();
  Elf64_Shdr of_names{}, of_images{};
  of_names.sh_offset = sizeof header;
  of_names.sh_size = names.size();
  of_images.sh_name = 1;
  of_images.sh_offset = sizeof header + names.size();
  of_images.sh_size = images.size();
  Put(program, 0, header);
  program += names + images + std::string(2 * sizeof of_names, '\0');
  Put(program, header.e_shoff, of_names);
  Put(program, header.e_shoff + sizeof of_names, of_images);
  return program;
}

TEST(FatBinary, WhatAProgramWasBuiltForIsFound) {
  // to a multiple of 8
  const std::string padded = Image(75, kLz4, kPacked, 13) + std::string(7, '\0');
  const std::string program = ProgramOf(padded + Image(90, 0, ".version 8.0", 0));
  EXPECT_THAT(PtxArchitectures(program), testing::ElementsAre(75, 90));
  EXPECT_THAT(PtxArchitectures("#!/bin/sh"), testing::IsEmpty());
  for (size_t cut = 0; cut < program.size(); ++cut)
    EXPECT_TRUE(PtxArchitectures(program.substr(0, cut)).empty());
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
