// The checks on single blocks written in PTX, where the compiler's choices matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {
namespace {

using testing::HasSubstr;

/// A block of 64 threads with all checks. %t is the thread, %s and %to are its 16 bytes of `room`
/// and of the output.
class OneBlock : public testing::Test {
 protected:
  std::string Run(const std::string& body) {
    const std::string ptx =
        ".version 8.8\n.target sm_90\n.address_size 64\n" + outside_ +
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .b16 %h<4>;\n.reg .b32 %t, %s, %r<8>;\n.reg .pred %p, %q;\n.reg .b64 %to, %d<4>;\n"
        ".shared .align 16 .b8 room[1024];\n"
        "ld.param.u64 %to, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %s, room;\nmad.lo.u32 %s, %t, 16, "
        "%s;\n"
        "mad.wide.u32 %to, %t, 16, %to;\n" +
        body + "ret;\n}\n";
    Memory memory(uint64_t{1} << 20);
    if (tracks_) memory.Track();
    auto module = ptx::Parse(ptx);
    if (!module) return module.error().ToString();
    auto program = LoadProgram(*std::move(module), memory);
    if (!program) return program.error().ToString();
    const uint64_t to = memory.Allocate(sizeof words_).value();
    std::memset(reinterpret_cast<void*>(to), 0x11, sizeof words_);
    memory.MarkDefined(to, sizeof words_);
    std::vector<std::byte> params(8);
    std::memcpy(params.data(), &to, 8);
    ExecOptions options;
    options.check_global = options.keep_going = true;
    options.system.grid = grid_;
    const auto result = (*program)->Run("k", {{1, 1, 1}, {64, 1, 1}, {1, 1, 1}, 0}, params,
                                        options);
    std::memcpy(words_, reinterpret_cast<const void*>(to), sizeof words_);
    printed_ = result.outcome.printed;
    return result.outcome.message;
  }
  uint64_t grid_ = 1;    ///< number of the launch
  bool tracks_ = true;   ///< memory knows which bytes are defined
  std::string outside_;  ///< before the kernel
  std::string printed_;
  uint32_t words_[64][4] = {};
};

/// A compiler may put the place where diverged lanes meet before what some of them do first.
TEST_F(OneBlock, LanesMeetAtABarrierThatLiesBefore) {
  EXPECT_EQ(
      Run("setp.ne.u32 %p, %t, 0;\n@!%p bra WORK;\nMEET:\nbar.sync 0;\nld.shared.u32 %r0, [room];\n"
          "st.global.u32 [%to], %r0;\nret;\nWORK:\nst.shared.u32 [room], 7;\nbra MEET;\n"),
      "");
  EXPECT_EQ(words_[63][0], 7u);
}

TEST_F(OneBlock, ABarrierThatOthersMayPassByIsReported) {
  EXPECT_THAT(Run("setp.ne.u32 %p, %t, 0;\n@!%p bra WORK;\nMEET:\nbar.sync "
                  "0;\nret;\nWORK:\nld.global.u32 %r0, [%to];\n"
                  "setp.eq.u32 %q, %r0, 0;\n@%q bra MEET;\n"),
              HasSubstr("only some lanes of the warp reach this barrier"));
}

TEST_F(OneBlock, LanesThatReturnBeforeABarrierAreNotWaitedFor) {
  const std::string head =
      "setp.ge.u32 %p, %t, 40;\n@%p bra LEAVE;\nbar.sync 0;\nst.global.u32 [%to], %t;\nLEAVE:\n";
  EXPECT_EQ(Run(head), "");
  EXPECT_EQ(words_[39][0], 39u);
  EXPECT_THAT(Run(head + "st.global.u32 [%to+4], %t;\n"),
              HasSubstr("only some lanes of the warp reach this barrier"));
}

TEST_F(OneBlock, AStructIsReadWithItsPadding) {
  const std::string two_of_four =
      "mov.u16 %h0, 5;\nst.shared.u8 [%s+8], %h0;\nst.shared.u8 [%s+9], %h0;\n";
  EXPECT_EQ(Run(two_of_four +
                "ld.shared.v4.u8 {%h0, %h1, %h2, %h3}, [%s+8];\nst.global.u16 [%to], %h1;\n"),
            "");
  EXPECT_THAT(Run(two_of_four + "ld.shared.u32 %r0, [%s+8];\nst.global.u32 [%to], %r0;\n"),
              HasSubstr("before anything was written there"));
}

/// Pairs of a double and an int are sorted and moved as 16 bytes.
TEST_F(OneBlock, PaddingIsCopiedAlong) {
  const std::string three =
      "mov.u64 %d0, 3;\nst.shared.u64 [%s], %d0;\nst.shared.u32 [%s+8], %t;\nbar.sync 0;\n";
  const std::string load = "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%s];\n";
  EXPECT_EQ(Run(three + "ld.shared.v4.u8 {%h0, %h1, %h2, %h3}, [%s+12];\nst.shared.v4.u8 [%s+8], "
                        "{%h0, %h1, %h2, %h3};\n"),
            "");
  EXPECT_EQ(Run(three + load + "st.global.v4.u32 [%to], {%r0, %r1, %r2, %r3};\n"), "");
  const std::string unwritten = "before anything was written there";
  EXPECT_THAT(Run(three + load + "add.u32 %r3, %r3, 1;\nst.global.u32 [%to], %r3;\n"),
              HasSubstr(unwritten));
  EXPECT_THAT(Run(load + "st.global.v4.u32 [%to], {%r0, %r1, %r2, %r3};\n"), HasSubstr(unwritten));
}

TEST_F(OneBlock, PaddingIsCopiedAlongInOtherMemory) {
  EXPECT_EQ(Run(".local .align 16 .b8 mine[32];\nmov.u16 %h0, 5;\nst.local.u16 [mine+8], %h0;\n"
                "ld.local.v2.u8 {%h0, %h1}, [mine+10];\nst.local.v2.u8 [mine+26], {%h0, %h1};\n"),
            "");
  EXPECT_THAT(Run(".local .align 16 .b8 mine[32];\nld.local.v2.u8 {%h0, %h1}, [mine+10];\n"
                  "st.global.v2.u8 [%to], {%h0, %h1};\n"),
              HasSubstr("before anything was written there"));
}

/// The load takes the fourth word along, which another thread writes meanwhile.
TEST_F(OneBlock, WhatAWidenedLoadDropsIsNotRead) {
  const std::string body =
      "st.shared.v4.u32 [%s], {%t, %t, %t, %t};\nbar.sync 0;\nmov.u32 %r7, room;\n" +
      std::string(".pragma \"used_bytes_mask 0xfff\";\n") +
      "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r7+512];\nst.global.v2.u32 [%to], {%r0, %r1};\n"
      "setp.eq.u32 %p, %t, 40;\n@%p st.shared.u32 [%r7+";
  EXPECT_EQ(Run(body + "524], 1;\n"), "");
  EXPECT_THAT(Run(body + "520], 1;\n"), HasSubstr("with no barrier between"));
}

/// Thread 0 hands shared memory to thread 32 by a flag in global memory: a fence must precede it.
TEST_F(OneBlock, AGlobalFlagOrdersTheBlocksSharedMemory) {
  const auto body = [](const std::string& fence) {
    return "ld.param.u64 %d0, [out];\nsetp.eq.u32 %p, %t, 0;\nsetp.ne.u32 %q, %t, 32;\n"
           "@%p bra GIVE;\n@%q ret;\nWAIT:\nld.relaxed.gpu.global.u32 %r1, [%d0];\n"
           "setp.ne.u32 %p, %r1, 1;\n@%p bra WAIT;\nld.shared.u32 %r0, [room];\n"
           "st.global.u32 [%to], %r0;\nret;\nGIVE:\nst.shared.u32 [room], 7;\n" +
           fence + "st.relaxed.gpu.global.u32 [%d0], 1;\n";
  };
  for (const bool tracks : {true, false}) {
    tracks_ = tracks;
    EXPECT_EQ(Run(body("fence.acq_rel.cta;\n")), "");
    EXPECT_EQ(words_[32][0], 7u);
    EXPECT_THAT(Run(body("")), HasSubstr("with no barrier between"));
  }
}

/// Words 16 bytes apart, so that eight lanes share a line of the shadow; those of the thread
/// opposite belong to the other warp.
TEST_F(OneBlock, WordsThatLieApartRaceLikeThoseSideBySide) {
  const std::string opposite =
      "xor.b32 %r1, %t, 63;\nld.param.u64 %d0, [out];\nmad.wide.u32 %d0, %r1, 16, %d0;\nadd.u32 "
      "%r2, %t, 9;\n";
  const std::string store = "st.global.u32 [%to], %t;\n";
  const std::string read = "ld.global.u32 %r3, [%d0];\n";
  EXPECT_EQ(Run(store + "add.u32 %r2, %t, 9;\nst.global.v2.u32 [%to], {%r2, %t};\n"), "");
  EXPECT_EQ(words_[40][0], 49u);
  EXPECT_EQ(words_[40][1], 40u);
  EXPECT_EQ(words_[40][2], 0x11111111u);
  EXPECT_EQ(Run(opposite + store + "bar.sync 0;\nst.global.v2.u32 [%d0], {%r2, %r2};\n"), "");
  EXPECT_EQ(words_[40][1], 32u);
  EXPECT_THAT(Run(opposite + store + "st.global.v2.u32 [%d0], {%r2, %r2};\n"),
              HasSubstr("with no barrier between"));
  EXPECT_THAT(Run(opposite + store + read), HasSubstr("with no barrier between"));
  EXPECT_THAT(Run(opposite + read + store), HasSubstr("with no barrier between"));
  EXPECT_EQ(Run(opposite + read + "bar.sync 0;\n" + store), "");
  EXPECT_EQ(Run(opposite + "st.global.v2.u32 [%to+8], {%t, %t};\n" + read), "");
  EXPECT_THAT(
      Run("ld.param.u64 %d0, [out];\nand.b32 %r1, %t, 31;\nmad.wide.u32 %d0, %r1, 16, %d0;\n"
          "st.global.u32 [%d0], %t;\n"),
      HasSubstr("with no barrier between"));
  EXPECT_THAT(
      Run("ld.param.u64 %d0, [out];\nand.b32 %r1, %t, 30;\nmad.wide.u32 %d0, %r1, 16, %d0;\n"
          "st.global.u32 [%d0], %t;\n"),
      HasSubstr("with no barrier between"));
}

/// A word that the first look at its epoch finds in order, and the next not.
/// Scatters do so with values that they discard.
TEST_F(OneBlock, LanesOfAWarpMayOverwriteEachOtherWhereNobodyReads) {
  const std::string discard =
      "setp.lt.u32 %p, %t, 32;\n@%p st.shared.u32 [room], %t;\nbar.sync 0;\n";
  const std::string read = "ld.shared.u32 %r0, [room];\nst.global.u32 [%to], %r0;\n";
  EXPECT_EQ(Run(discard), "");
  EXPECT_THAT(Run(discard + read), HasSubstr("where lanes of a warp wrote different values"));
  EXPECT_EQ(
      Run(discard + "setp.eq.u32 %q, %t, 5;\n@%q st.shared.u32 [room], 7;\nbar.sync 0;\n" + read),
      "");
  EXPECT_THAT(Run("st.shared.u32 [room], %t;\n"), HasSubstr("written by thread"));  // of two warps
}

TEST_F(OneBlock, WordsBehindAKnownAddressAreCheckedOneByOne) {
  const std::string head =
      "mov.u32 %r7, room;\nst.shared.u32 [%s], %t;\nst.shared.u32 [%s+4], %t;\nbar.sync 0;\n";
  const std::string loads =
      "ld.shared.u32 %r0, [%r7];\nld.shared.u32 %r1, [%r7+16];\nld.shared.u32 %r2, [%r7+4];\n";
  const std::string sum =
      "add.u32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, %r2;\nst.global.u32 [%to], %r0;\n";
  EXPECT_EQ(Run(head + loads + sum), "");
  EXPECT_EQ(words_[50][0], 1u);
  EXPECT_THAT(Run(head + loads + sum + "setp.eq.u32 %p, %t, 40;\n@%p st.shared.u32 [%r7+4], 7;\n"),
              HasSubstr("with no barrier between"));
  EXPECT_THAT(
      Run(head +
          "ld.shared.u32 %r0, [%r7];\nld.shared.u32 %r1, [%r7+8];\nld.shared.u32 %r2, [%r7+4];\n" +
          sum),
      HasSubstr("before anything was written there"));
  EXPECT_THAT(Run(head + "setp.eq.u32 %p, %t, 3;\n@%p st.shared.u32 [%r7+16], 7;\n" + loads + sum),
              HasSubstr("with no barrier between"));
}

/// Half of the threads have a value to store; each loads that of the thread opposite.
TEST_F(OneBlock, UndefinedRegistersStayUndefinedInSharedMemory) {
  const std::string exchange =
      "setp.lt.u32 %p, %t, 32;\n@%p mov.u32 %r0, %t;\nst.shared.u32 [%s], %r0;\nbar.sync "
      "0;\nxor.b32 %r1, %t, 63;\n"
      "mov.u32 %r2, room;\nmad.lo.u32 %r1, %r1, 16, %r2;\n";
  const std::string load = "ld.shared.u32 %r3, [%r1];\n";
  const std::string store = "add.u32 %r3, %r3, 1;\nst.global.u32 [%to], %r3;\n";
  EXPECT_THAT(Run(exchange + load + store),
              HasSubstr("stores a value from shared memory that nothing ever defined"));
  EXPECT_EQ(Run(exchange + "@%p bra LEAVE;\n" + load + store + "LEAVE:\n"), "")
      << "those opposite had values";
  EXPECT_EQ(words_[40][0], 24u);
  EXPECT_EQ(Run(exchange + load + "selp.u32 %r3, 5, %r3, %p;\n" + store), "");
  EXPECT_EQ(Run(exchange + "st.shared.u32 [%s], %t;\nbar.sync 0;\n" + load + store), "")
      << "overwritten";
  EXPECT_EQ(Run(exchange + "atom.shared.exch.b32 %r4, [%s], %t;\nbar.sync 0;\n" + load + store),
            "");
  EXPECT_EQ(Run(exchange + load +
                "setp.gt.u32 %q, %r3, 7;\n@%q bra LEAVE;\nst.global.u32 [%to], %t;\nLEAVE:\n"),
            "")
      << "sorts compare the empty end of a tile";
  EXPECT_THAT(
      Run(exchange + load +
          "and.b32 %r4, %t, 3;\nmad.wide.u32 %d0, %r3, 0, %to;\nst.global.u32 [%d0], %r4;\n"),
      HasSubstr("computes an address from a variable that nothing was written to"));
}

/// Block-wide scans take from a sum that lanes exchanged their own term, which may be undefined at
/// a tile's end.
TEST_F(OneBlock, AnUndefinedTermThatIsTakenFromItsSumLeavesNothing) {
  const std::string scan =
      "setp.lt.u32 %p, %t, 20;\n@%p mov.u32 %r0, %t;\nmov.u32 %r1, %r0;\n"
      "shfl.sync.up.b32 %r2|%q, %r1, 1, 0, -1;\n@%q add.u32 %r2, %r2, %r1;\nmov.u32 %r1, %r2;\n"
      "shfl.sync.up.b32 %r2|%q, %r1, 2, 0, -1;\n@%q add.u32 %r2, %r2, %r1;\n";
  EXPECT_EQ(Run(scan + "sub.u32 %r3, %r2, %r0;\nst.global.u32 [%to], %r3;\n"), "");
  EXPECT_EQ(words_[3][0], 3u);
  EXPECT_THAT(Run(scan + "sub.u32 %r3, %t, %r0;\nst.global.u32 [%to], %r3;\n"),
              HasSubstr("nothing was written to"));
  EXPECT_THAT(
      Run("setp.lt.u32 %p, %t, 20;\n@%p mov.u32 %r0, %t;\nmov.u32 %r3, 9;\nmov.u32 %r4, 0;\nL:\n"
          "sub.u32 %r3, %r3, %r0;\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %q, %r4, 3;\n@%q bra L;\n"
          "st.global.u32 [%to], %r3;\n"),
      HasSubstr("nothing was written to"))
      << "a sum of its own results";
}

/// Compilers count down from an offset that the address adds.
TEST_F(OneBlock, AddressesOf32BitsMayBeginBelowZero) {
  const std::string down =
      "st.shared.u32 [%s], %t;\nbar.sync 0;\nshl.b32 %r0, %t, 4;\nneg.s32 %r0, %r0;\n";
  EXPECT_EQ(Run(down + "ld.shared.u32 %r1, [%r0+1008];\nst.global.u32 [%to], %r1;\n"), "");
  EXPECT_EQ(words_[5][0], 58u);
  EXPECT_EQ(
      Run(down +
          "setp.gt.u32 %p, %t, 2;\n@%p ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r0+1008];\n@%p "
          "st.global.u32 [%to], %r0;\n"),
      "");
  EXPECT_EQ(words_[5][0], 58u);
  EXPECT_EQ(Run(down + "atom.shared.add.u32 %r1, [%r0+1008], 1;\nst.global.u32 [%to], %r1;\n"), "");
  EXPECT_EQ(words_[5][0], 58u);
  EXPECT_EQ(
      Run(down +
          "cp.async.ca.shared.global [%r0+1008], [%to], 4;\ncp.async.wait_all;\nbar.sync 0;\n"),
      "");
  EXPECT_THAT(Run(down + "ld.shared.u32 %r1, [%r0+900];\n"), HasSubstr("shared"));
}

TEST_F(OneBlock, BulkCopiesTakeOffsetsOfBothSigns) {
  EXPECT_EQ(
      Run("setp.ne.u32 %p, %t, 0;\n@%p bra OUT;\nmov.u32 %r0, room;\nsub.u32 %r0, %r0, 64;\n"
          "st.shared.v4.u32 [room+32], {77, 1, 2, 3};\nfence.proxy.async;\nadd.u64 %d0, %to, 64;\n"
          "cp.async.bulk.global.shared::cta.bulk_group [%d0+-48], [%r0+96], "
          "16;\ncp.async.bulk.commit_group;\n"
          "cp.async.bulk.wait_group 0;\nOUT:\n"),
      "");
  EXPECT_EQ(words_[1][0], 77u);
}

TEST_F(OneBlock, TheBarrierOfABulkCopyMayHaveAnOffset) {
  EXPECT_EQ(
      Run("setp.ne.u32 %p, %t, 0;\n@%p bra OUT;\nmov.u32 %r0, room;\nadd.u32 %r1, %r0, 16;\n"
          "mbarrier.init.shared.b64 [room+32], 1;\nmbarrier.arrive.expect_tx.shared.b64 %d0, "
          "[%r0+32], 16;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%to], 16, "
          "[%r1+16];\n"
          "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%r0+32], 0;\n@!%q bra WAIT;\n"
          "ld.shared.u32 %r2, [%r0];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%to], %r2;\nOUT:\n"),
      "");
  EXPECT_EQ(words_[0][0], 0x11111112u);
}

TEST_F(OneBlock, FunctionsMayNeedNoMemory) {  // a kernel without a stack calls one without a frame
  outside_ = ".func nothing() { ret; }\n";
  EXPECT_EQ(Run("call nothing;\n"), "");
}

TEST_F(OneBlock, FunctionsTakeAndGiveRegisters) {
  outside_ =
      ".func (.reg .u64 sum, .reg .u32 product) both (.reg .u32 x, .reg .u32 y);\n"
      ".func (.reg .u32 r) pick (.reg .u32 x) { .reg .pred small; setp.lt.u32 small, x, 32; "
      "mov.u32 r, 1; @small ret; "
      "mov.u32 r, 2; }\n";
  EXPECT_EQ(Run("call (%d0, %r0), both, (%t, 7);\ncall (%r1), pick, (%t);\nmov.u32 %r2, "
                "9;\nsetp.eq.u32 %p, %t, 3;\n"
                "@%p call (%r2), pick, (40);\ncvt.u32.u64 %r3, %d0;\nst.global.v4.u32 [%to], {%r0, "
                "%r1, %r2, %r3};\n"
                "ret;\n}\n.func (.reg .u64 sum, .reg .u32 product) both (.reg .u32 x, .reg .u32 "
                "y)\n{ .reg .u32 s; "
                "add.u32 s, x, y; cvt.u64.u32 sum, s; mul.lo.u32 product, x, y;\n"),
            "");
  EXPECT_EQ(words_[40][0], 280u);
  EXPECT_EQ(words_[40][1], 2u);
  EXPECT_EQ(words_[31][1], 1u);
  EXPECT_EQ(words_[3][2], 2u);
  EXPECT_EQ(words_[4][2], 9u);
  EXPECT_EQ(words_[40][3], 47u);
  outside_ =
      ".func (.reg .f32 r) half (.reg .f32 x) { mul.f32 r, x, 0.5; ret; }\n"
      ".func (.reg .f64 r) twice (.reg .f64 x) { add.f64 r, x, x; ret; }\n";
  EXPECT_EQ(Run(".reg .f64 %e; call (%r0), half, (3.0);\ncall (%e), twice, (0f3f800000);\nmov.b64 "
                "%d0, %e;\n"
                "cvt.u32.u64 %r1, %d0;\nshr.u64 %d0, %d0, 32;\ncvt.u32.u64 %r2, %d0;\n"
                "st.global.v4.u32 [%to], {%r0, %r1, %r2, %t};\n"),
            "");
  EXPECT_EQ(words_[1][0], 0x3fc00000u);
  EXPECT_EQ(words_[1][1], 0u);
  EXPECT_EQ(words_[1][2], 0x40000000u);
}

/// Written as the assembler writes it.
TEST_F(OneBlock, ConstantsAreOfTheirOperandsType) {
  outside_ = ".global .f32 sink;\n";
  const std::string declare =
      ".reg .f32 %f<4>; .reg .f64 %e; mov.b32 %f0, %t; mov.b32 %r0, %t; mov.pred %p, 1;\n";
  for (const char* wrong :
       {"mov.u32 %r1, 1.5;", "mov.b32 %r1, 1.5;", "mov.u32 %r1, 0f3f800000;",
        "add.s32 %r1, %r0, 0f3f800000;", "add.f32 %f1, %f0, 1;", "mov.f64 %e, 1;",
        "setp.eq.s32 %q, %r0, 1.5;", "setp.eq.f32 %q, %f0, 1;", "st.global.f32 [sink], 1;",
        "selp.u32 %r1, 0f3f800000, 1, %p;", "shl.b32 %r1, %r0, 1.5;", "cvt.rn.f32.u32 %f1, 1.5;",
        "slct.u32.f32 %r1, 1, 2, 1;", "atom.global.add.f32 %f1, [sink], 1;"})
    EXPECT_THAT(Run(declare + wrong), HasSubstr("not support")) << wrong;
  for (const char* right :
       {"mov.b32 %r1, 0f3f800000;", "mov.b64 %d0, 1.0;", "mov.f64 %e, 0f3f800000;",
        "and.b32 %r1, %r0, 0f3f800000;", "slct.f32.s32 %f1, 0f3f800000, 0f00000000, 1;",
        "slct.u32.f32 %r1, 1, 2, 0f3f800000;", "selp.f32 %f1, 1.0, 2.0, %p;",
        "set.eq.u32.f32 %r1, %f0, 1.0;", "cvt.rn.f32.s32 %f1, 3;"})
    EXPECT_EQ(Run(declare + right), "") << right;
}

TEST_F(OneBlock, BarriersAreOfWholeWarps) {
  for (const char* wrong :
       {"bar.sync 0, 33;", "bar.arrive 1, 40;", "barrier.sync 0, 33;", "bar.arrive 1, 0;",
        "bar.arrive 1;", "bar.red.popc.u32 %r0, 0, 33, %p;", "bar.sync 16;"})
    EXPECT_THAT(Run(wrong), HasSubstr("not support")) << wrong;
  EXPECT_THAT(Run("mov.u32 %r0, 33; bar.sync 1, %r0;"),
              HasSubstr("a barrier of 33 threads is none of whole warps"));
  EXPECT_EQ(Run("mov.u32 %r0, 64; bar.sync 1, %r0; bar.sync 2, 64;"), "");
}

TEST_F(OneBlock, KernelsLaunchNoKernels) {
  outside_ = ".visible .entry child() { ret; }\n";
  EXPECT_THAT(Run("mov.u64 %d0, child;\n"),
              HasSubstr("of 'child': kernels launch no kernels here"));
}

TEST_F(OneBlock, RegistersMayBeVectors) {
  EXPECT_EQ(Run(".reg .v4 .u32 q;\n.reg .v2 .u32 h<2>;\nmov.v4.u32 q, {%t, 2, 3, 4};\nmov.v4.u32 "
                "q, {q.y, q.x, q.w, q.z};\n"
                "st.global.v4.u32 [%to], q;\nld.global.v2.u32 h1, [%to];\nmov.v2.u32 h0, "
                "h1;\nadd.u32 h0.x, h0.x, h1.y;\n"
                "st.global.u32 [%to+8], h0.r;\n"),
            "");
  EXPECT_EQ(words_[9][0], 2u);
  EXPECT_EQ(words_[9][1], 9u);
  EXPECT_EQ(words_[9][2], 11u);
  EXPECT_EQ(words_[9][3], 3u);
}

TEST_F(OneBlock, FunctionsDeclareVariablesOfTheModule) {
  EXPECT_EQ(Run(".global .u32 count = 5;\n.const .u32 two[2] = {3, 4};\n"
                "ld.global.u32 %r0, [count];\nld.const.u32 %r1, [two+4];\n"
                "st.global.v2.u32 [%to], {%r0, %r1};\n"),
            "");
  EXPECT_EQ(words_[40][0], 5u);
  EXPECT_EQ(words_[40][1], 4u);
}

TEST_F(OneBlock, FunctionsTakeAndGiveVectors) {
  outside_ =
      ".func (.reg .v2 .f32 r) twice (.reg .v2 .f32 a) {\nadd.f32 r.x, a.x, a.x;\n"
      "add.f32 r.y, a.y, a.y;\nret;\n}\n";
  EXPECT_EQ(Run(".reg .v2 .f32 v, w;\nmov.f32 v.x, 0f3F800000;\nmov.f32 v.y, 0f40000000;\n"
                "call (w), twice, (v);\nst.global.v2.f32 [%to], w;\n"),
            "");
  EXPECT_EQ(words_[9][0], 0x40000000u);
  EXPECT_EQ(words_[9][1], 0x40800000u);
}

TEST_F(OneBlock, RegistersAreOfTheirInstructionsType) {
  for (const char* wrong :
       {"add.f32 %r0, %d0, 0f3F800000;", "add.u32 %d0, %r0, 1;", "setp.eq.s32 %p, %d0, 1;",
        ".reg .u32 %u; add.f32 %r0, %u, 0f3F800000;", ".reg .f32 %f; add.s32 %r0, %f, 1;"})
    EXPECT_THAT(Run(wrong), HasSubstr("is a register of another type")) << wrong;
  EXPECT_EQ(Run(".reg .u32 %u; .reg .f32 %f; mov.u32 %u, 1; and.b32 %r0, %u, 1; mov.b32 %f, %r0;"
                "mul.wide.u32 %d0, %u, 4; shl.b64 %d0, %d0, %u; add.f32 %r0, %f, 0f3F800000;"
                "setp.lt.f32 %p, %f, %r0; selp.f32 %f, %r0, %f, %p;"),
            "");
}

TEST_F(OneBlock, ArithmeticDeliversOneNan) {
  EXPECT_EQ(Run("mov.b32 %r0, 0x7fc12345;\nadd.f32 %r1, %r0, 0f3F800000;\n"
                "fma.rn.f32 %r2, %r0, %r0, %r0;\nmin.f32 %r3, %r0, %r0;\nneg.f32 %r4, %r0;\n"
                "st.global.v4.u32 [%to], {%r1, %r2, %r3, %r4};\n"),
            "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(words_[33][i], 0x7fffffffu) << i;
  EXPECT_EQ(words_[33][3], 0xffc12345u);
}

TEST_F(OneBlock, UnwrittenWordsThatNobodyKeepsAreNoHazard) {
  const std::string head =
      "setp.lt.u32 %p, %t, 32;\n@%p st.shared.u32 [%s], %t;\nld.shared.u32 %r0, [%s];\n";
  EXPECT_EQ(Run(head + "@%p st.global.u32 [%to], %r0;\n"), "");
  EXPECT_EQ(words_[31][0], 31u);
  EXPECT_THAT(Run(head + "setp.lt.u32 %q, %t, 33;\n@%q st.global.u32 [%to], %r0;\n"),
              HasSubstr("before anything was written there, and the value is stored"));
  EXPECT_THAT(Run(head + "st.global.u32 [%to], %r0;\n"),
              HasSubstr("before anything was written there"));
}

TEST_F(OneBlock, PrintsWidthsThatAreArguments) {
  outside_ =
      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 format[24] = {91, 37, 42, 100, 93, 91, 37, 45, 42, 100, 93, 91, 37, "
      "46, 42, 102, 93, 10, "
      "0};\n";
  EXPECT_EQ(
      Run("setp.ne.u32 %p, %t, 0;\n@%p bra OUT;\n.local .align 8 .b8 list[32];\n"
          "st.local.v2.u32 [list], {5, 42};\nst.local.v2.u32 [list+8], {4, 7};\nst.local.u32 "
          "[list+16], 2;\n"
          "st.local.u64 [list+24], 0x400921FB54442D18;\nmov.u64 %d0, list;\ncvta.local.u64 %d0, "
          "%d0;\n"
          "mov.u64 %d1, format;\ncvta.global.u64 %d1, %d1;\n{ .param .b64 f; .param .b64 a; .param "
          ".b32 r;\n"
          "st.param.b64 [f], %d1;\nst.param.b64 [a], %d0;\ncall (r), vprintf, (f, a);\n}\nOUT:\n"),
      "");
  EXPECT_EQ(printed_, "[   42][7   ][3.14]\n");
}

TEST_F(OneBlock, PartsOfAVectorStayUnwrittenWhenItIsCopied) {
  const std::string copy =
      ".shared .align 16 .b8 other[1024];\nmov.u64 %d0, 3;\nst.shared.u64 [%s], "
      "%d0;\nst.shared.u32 [%s+8], %t;\n"
      "bar.sync 0;\nld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%s];\nmov.u32 %r4, other;\nmad.lo.u32 "
      "%r4, %t, 16, %r4;\n"
      "st.shared.v4.u32 [%r4], {%r0, %r1, %r2, %r3};\nbar.sync 0;\n";
  const auto use = [&](const std::string& offset) {
    return Run(copy + "ld.shared.u32 %r5, [%r4+" + offset +
               "];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%to], %r5;\n");
  };
  EXPECT_EQ(use("8"), "");
  EXPECT_THAT(use("12"), HasSubstr("that nothing ever defined"));
  EXPECT_EQ(Run(copy + "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r4];\nst.global.v4.u32 [%to], "
                       "{%r0, %r1, %r2, %r3};\n"),
            "")
      << "padding";
}

/// Code that was not optimised copies the byte of a struct without members.
TEST_F(OneBlock, EmptyStructsAreCopied) {
  const std::string copy =
      ".local .align 1 .b8 mine[2];\nld.local.u8 %h0, [mine];\nst.local.u8 [mine+1], %h0;\n";
  EXPECT_EQ(Run(copy), "");
  EXPECT_EQ(Run(copy + "ld.local.u8 %h1, [mine+1];\nst.local.u8 [mine], %h1;\n"), "");
  EXPECT_THAT(
      Run(copy + "ld.local.u8 %h1, [mine+1];\nadd.u16 %h1, %h1, 1;\nst.global.u8 [%to], %h1;\n"),
      HasSubstr("reads local address 0x1 before anything was written there"));
  EXPECT_EQ(Run("mov.u16 %h0, 7;\n.local .align 1 .b8 mine[2];\nst.local.u8 [mine], "
                "%h0;\nld.local.u8 %h0, [mine];\n"
                "st.local.u8 [mine+1], %h0;\nld.local.u8 %h1, [mine+1];\nadd.u16 %h1, %h1, "
                "1;\nst.global.u8 [%to], %h1;\n"),
            "");
}

/// Unoptimised code does so, by generic addresses.
TEST_F(OneBlock, StructsOnTheStackAreCopiedAndTheirBitFieldsSet) {
  const std::string stack =
      ".local .align 8 .b8 mine[32];\nmov.u64 %d0, mine;\ncvta.local.u64 %d0, %d0;\nst.u32 [%d0], "
      "%t;\n";
  const std::string copy = "ld.u64 %d1, [%d0+8];\nst.u64 [%d0+24], %d1;\n";
  EXPECT_EQ(Run(stack + copy), "") << "a member that was never set";
  EXPECT_EQ(Run(stack + copy + "ld.u64 %d2, [%d0+24];\nst.u64 [%d0+16], %d2;\n"), "");
  EXPECT_THAT(Run(stack + copy + "ld.u64 %d2, [%d0+24];\nst.global.u64 [%to], %d2;\n"),
              HasSubstr("stores a variable that nothing was written to"));
  EXPECT_THAT(Run(stack + copy +
                  "ld.u64 %d2, [%d0+24];\nadd.u64 %d2, %d2, 1;\nst.global.u64 [%to], %d2;\n"),
              HasSubstr("reads local address 0x18 before anything was written there"));
  const std::string field =
      "ld.u32 %r0, [%d0+4];\nand.b32 %r1, %r0, -256;\nor.b32 %r2, %r1, 9;\nst.u32 [%d0+4], %r2;\n";
  EXPECT_EQ(Run(stack + field +
                "ld.u32 %r3, [%d0+4];\nand.b32 %r3, %r3, 255;\nst.global.u32 [%to], %r3;\n"),
            "");
  EXPECT_EQ(words_[7][0], 9u);
  EXPECT_EQ(
      Run(stack + "ld.u32 %r0, [%d0+4];\nbfi.b32 %r1, %t, %r0, 8, 8;\nst.u32 [%d0+4], %r1;\n"), "");
  EXPECT_THAT(Run(stack + "ld.u32 %r0, [%d0+4];\nand.b32 %r1, %r0, 255;\nadd.u32 %r1, %r1, "
                          "1;\nst.global.u32 [%to], %r1;\n"),
              HasSubstr("reads local address 0x4 before anything was written there"));
}

/// Merges do so, in unoptimised code.
TEST_F(OneBlock, OnePlaceBehindAListMayGoToTheStack) {
  const std::string list =
      ".local .align 8 .b8 mine[8];\nmov.u64 %d0, mine;\ncvta.local.u64 %d0, %d0;\nmov.u64 %d1, "
      "room;\n"
      "cvta.shared.u64 %d1, %d1;\nst.shared.u32 [room], 1;\nbar.sync 0;\n";
  EXPECT_EQ(Run(list + "ld.u32 %r0, [%d1+4];\nst.u32 [%d0], %r0;\n"), "");
  EXPECT_THAT(Run(list + "ld.u32 %r0, [%d1+8];\nst.u32 [%d0], %r0;\n"),
              HasSubstr("before anything was written"));
  EXPECT_THAT(Run(list + "ld.u32 %r0, [%d1+4];\nadd.u32 %r0, %r0, 1;\nst.u32 [%d0], %r0;\n"),
              HasSubstr("before anything was written"));
}

/// A recording of an H100 has other values than zero in %envreg 0, 6 and 10 only.
TEST_F(OneBlock, RegistersOfTheEnvironmentAreZero) {
  EXPECT_EQ(Run("mov.b32 %r0, %envreg3;\nmov.b32 %r1, %envreg31;\n"
                "st.global.v2.u32 [%to], {%r0, %r1};\n"),
            "");
  EXPECT_EQ(words_[9][0], 0u);
  EXPECT_EQ(words_[9][1], 0u);
  EXPECT_THAT(Run("mov.b32 %r0, %envreg32;\n"), HasSubstr("does not support"));
  EXPECT_THAT(Run("mov.b32 %r0, %pm8;\n"), HasSubstr("does not support"));
}

/// A kernel may run in a CUDA graph, and beside a profiler.
TEST_F(OneBlock, CountersAndGraphsAreThereInSomeLaunchesOnly) {
  int with = 0;
  for (grid_ = 1; grid_ <= 32; ++grid_) {
    EXPECT_EQ(Run("mov.u32 %r0, %pm2;\nmov.u64 %d0, %current_graph_exec;\nmov.u64 %d1, %pm7_64;\n"
                  "cvt.u32.u64 %r1, %d0;\ncvt.u32.u64 %r2, %d1;\n"
                  "st.global.v4.u32 [%to], {%r0, %r1, %r2, %r2};\n"),
              "");
    with += words_[9][1] != 0;
    EXPECT_EQ(words_[9][0] != 0, words_[9][1] != 0);
  }
  EXPECT_GT(with, 4);
  EXPECT_LT(with, 28);
}

TEST_F(OneBlock, AsyncCopiesTellSizesFromPredicatesAndPolicies) {
  const std::string wait =
      "cp.async.wait_all;\nld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%s];\n"
      "st.global.v4.u32 [%to], {%r0, %r1, %r2, %r3};\n";
  EXPECT_EQ(Run("setp.lt.u32 %p, %t, 8;\ncp.async.cg.shared.global [%s], [%to], 16, %p;\n" + wait),
            "");
  EXPECT_EQ(words_[7][0], 0u);
  EXPECT_EQ(words_[8][3], 0x11111111u);
  EXPECT_EQ(
      Run("mov.u64 %d0, 0;\ncp.async.cg.shared.global.L2::cache_hint [%s], [%to], 16, %d0;\n" +
          wait),
      "");
  EXPECT_EQ(words_[7][3], 0x11111111u);
  EXPECT_EQ(
      Run("mov.u64 %d0, 0;\ncp.async.cg.shared.global.L2::cache_hint [%s], [%to], 16, 4, %d0;\n" +
          wait),
      "");
  EXPECT_EQ(words_[7][0], 0x11111111u);
  EXPECT_EQ(words_[7][1], 0u);
}

TEST_F(OneBlock, MoreSharedMemoryThanThereIsIsRefused) {
  EXPECT_THAT(Run(".shared .align 128 .b8 huge[0xffffffff];\nmov.u32 %r0, huge;\n"),
              HasSubstr("more than any GPU"));
  EXPECT_THAT(Run(".shared .align 128 .b8 large[2000000];\nmov.u32 %r0, large;\n"),
              HasSubstr("bytes of shared memory"));
}

TEST_F(OneBlock, SpecialRegistersCanBeExtended) {
  EXPECT_EQ(Run("cvt.u64.u32 %d0, %tid.x;\nst.global.u64 [%to], %d0;\n"), "");
  EXPECT_EQ(words_[40][0], 40u);
  EXPECT_EQ(words_[40][1], 0u);
  EXPECT_EQ(Run("cvt.u32.u16 %r0, %tid.x;\ncvt.s32.u32 %r1, %ntid.x;\n.reg .v4 .u32 q;\nmov.v4.u32 "
                "q, %ntid;\nadd.u32 "
                "q.y, q.y, q.w;\n"
                "st.global.v4.u32 [%to], {%r0, %r1, q.x, q.y};\n"),
            "");
  EXPECT_EQ(words_[40][0], 40u);
  EXPECT_EQ(words_[40][1], 64u);
  EXPECT_EQ(words_[40][2], 64u);
  EXPECT_EQ(words_[40][3], 1u);
  EXPECT_THAT(Run(".reg .f32 f;\ncvt.rn.f32.u32 f, %tid.x;\n"), HasSubstr("does not support"));
}

/// Blocks count themselves in and wait for the others, without a cooperative launch.
class HandMadeBarrier : public testing::Test {
 protected:
  LaunchOutcome Run(uint32_t blocks, uint64_t resident) {
    const std::string ptx =
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 %r<4>;\n.reg .pred %p;\n.reg .b64 %to;\nld.param.u64 %to, [out];\nmov.u32 %r0, "
        "%nctaid.x;\n"
        "fence.acq_rel.gpu;\natom.global.add.u32 %r1, [%to], 1;\n"
        "WAIT:\nld.relaxed.gpu.global.u32 %r1, [%to];\nsetp.lt.u32 %p, %r1, %r0;\n@%p bra "
        "WAIT;\nret;\n}\n";
    Memory memory(uint64_t{1} << 20);
    memory.Track();
    auto program = LoadProgram(ptx::Parse(ptx).value(), memory).value();
    const uint64_t to = memory.Allocate(256).value();
    std::memset(reinterpret_cast<void*>(to), 0, 256);
    memory.MarkDefined(to, 256);
    std::vector<std::byte> params(8);
    std::memcpy(params.data(), &to, 8);
    ExecOptions options;
    options.check_global = options.keep_going = true;
    options.threads = 1;
    options.resident_blocks = resident;
    options.max_warp_instructions_per_block = 100'000;
    return program->Run("k", {{blocks, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0}, params, options).outcome;
  }
};

TEST_F(HandMadeBarrier, BlocksThatFitRunSideBySide) {
  const LaunchOutcome outcome = Run(20, 20);
  EXPECT_TRUE(outcome.completed()) << outcome.message;
  EXPECT_EQ(outcome.blocks_executed, 20u);
}

TEST_F(HandMadeBarrier, MoreBlocksThanFitWaitForEver) {
  const LaunchOutcome outcome = Run(20, 19);
  ASSERT_FALSE(outcome.hazards.empty());
  EXPECT_EQ(outcome.hazards.front().kind, Hazard::Kind::kInstructionBudget);
}

}  // namespace
}  // namespace atunner::vgpu
