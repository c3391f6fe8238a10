#include "atunner/ptx/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "atunner/ptx/module.h"

namespace atunner::ptx {
namespace {

using testing::HasSubstr;

constexpr const char* kUser = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 x);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.extern .global .u32 counter;
.extern .shared .align 16 .b8 tile[];
.global .u32 own = 5;
.file 1 "user.cu"
.visible .entry k(.param .u64 out) {
  .reg .b32 a;
  .loc 1 7 3
  ld.global.u32 a, [own];
  ret;
})";
constexpr const char* kLibrary = R"(.version 8.4
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.extern .shared .align 4 .f32 tile[];
.global .u32 own = 7;
.visible .global .u32 counter = 3;
.visible .global .u64 table[1] = {twice};
.global .attribute(.managed) .align 4 .u32 everywhere = 9;
.weak .func helper() { ret; }
.file 1 "library.cu"
.visible .func (.param .b32 r) twice(.param .b32 x) {
  .reg .b32 a;
  .loc 1 9 3
  ld.global.u32 a, [own];
  st.param.b32 [r], a;
  ret;
})";

TEST(Link, LinesDoNotNameLabelsOfDroppedSections) {
  const std::string inlined = R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "user.cu"
.visible .entry other() {
  .loc 1 7 3, function_name $L__info_string0, inlined_at 1 9 5
  ret;
}
.section .debug_str {
$L__info_string0:
.b8 95
})";
  const std::string linked = Link(std::vector<std::string>{kLibrary, inlined}).value();
  EXPECT_THAT(linked, HasSubstr(".loc 100001 7 3\n"));
  EXPECT_THAT(linked, testing::Not(HasSubstr("info_string")));
  EXPECT_TRUE(Parse(linked));
}

TEST(Link, ModulesBecomeOne) {
  const auto text = Link(std::vector<std::string>{kUser, kLibrary});
  ASSERT_TRUE(text) << text.error().ToString();
  const auto module = Parse(*text);
  ASSERT_TRUE(module) << module.error().ToString() << *text;
  EXPECT_EQ(module->target(), "sm_90a");
  EXPECT_THAT(*text, HasSubstr(".version 8.4"));
  std::map<std::string, uint32_t> globals;
  for (const Variable& variable : module->globals()) {
    uint32_t value = 0;
    if (variable.initial.size() == sizeof value)
      std::memcpy(&value, variable.initial.data(), sizeof value);
    globals[variable.name] = value;
  }
  EXPECT_EQ(globals,
            (std::map<std::string, uint32_t>{
                {"own", 5}, {"own$1", 7}, {"everywhere", 9}, {"counter", 3}, {"table", 0}}));
  const Function* twice = module->Find("twice");
  ASSERT_NE(twice, nullptr);
  ASSERT_EQ(twice->body.size(), 3U);
  EXPECT_EQ(twice->body[0].operands[1].name, "own$1");
  EXPECT_EQ(module->SourceFile(twice->body[0].source_file), "library.cu");
  EXPECT_EQ(module->SourceFile(module->Find("k")->body[0].source_file), "user.cu");
}

TEST(Link, OfWeakDefinitionsOneIsKept) {
  const std::string weak = ".target sm_80\n.weak .func f() { ret; }";
  const std::string strong = ".target sm_80\n.visible .func f() { trap; ret; }";
  const auto text = Link(std::vector<std::string>{weak, strong, weak});
  ASSERT_TRUE(text) << text.error().ToString();
  const auto module = Parse(*text);
  ASSERT_TRUE(module) << module.error().ToString() << *text;
  EXPECT_EQ(module->Find("f")->body.size(), 2U);
  const auto twice = Link(std::vector<std::string>{strong, strong});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().ToString(), HasSubstr("'f' is defined in several modules"));
}

TEST(Link, WhatIsNoPtxIsRefused) {
  for (const char* text :
       {"", "hello", "}", ".func", ".global .u32 x", ".func f() {", ".section", "\"", ".file"}) {
    const auto linked = Link(std::vector<std::string>{text, text});
    EXPECT_FALSE(linked && Parse(*linked)) << text;
  }
}

}  // namespace
}  // namespace atunner::ptx
