// Latencies, windows and barriers of the timeline, through the engine: PTX in, Counts::path out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "atunner/vgpu/engine.h"
#include "atunner/vgpu/timing/op_cost.h"

namespace atunner::vgpu {
namespace {

constexpr const char* kHead =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
    ".reg .pred %p<9>;\n.reg .f32 %f<99>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<9>;\n.shared .align 4 "
    ".b8 s[4096];\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f2, "
    "0f3F800000;\n";

struct Measured {
  std::array<double, 2> path{};
  Counts counts;
};

Measured Counted(const std::string& body, uint32_t threads = 32, uint32_t registers = 0,
                 const MachineCode* machine_code = nullptr, uint32_t cluster = 1,
                 bool timeline = true, uint32_t memory_turns = 1) {
  Memory memory(1 << 24);
  const uint64_t data = *memory.Allocate(1 << 20);
  auto module = ptx::Parse(kHead + body + "ret;\n}\n");
  EXPECT_TRUE(module) << (module ? "" : module.error().ToString());
  auto program = LoadProgram(*std::move(module), memory);
  EXPECT_TRUE(program) << (program ? "" : program.error().ToString());
  std::vector<std::byte> params(8);
  std::memcpy(params.data(), &data, 8);
  ExecOptions options;
  options.check_hazards = false;
  options.count = true;
  options.timeline = timeline;
  options.threads = 1;
  options.registers = registers;
  options.latencies.memory_turns = memory_turns;
  options.machine_code = machine_code;
  const ExecResult done = (*program)->Run(
      "k", {{cluster, 1, 1}, {threads, 1, 1}, {cluster, 1, 1}, 0}, params, options);
  EXPECT_TRUE(done.outcome.completed()) << done.outcome.message;
  memory.Free(data);
  return {done.counts.path, done.counts};
}

std::string Repeat(int times, const std::string& text) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// A machine instruction of the body's `line`, from 0.
MachineInstruction Machine(uint32_t line, uint16_t opcode, uint8_t stall) {
  MachineInstruction instruction;
  instruction.opcode = opcode;
  instruction.stall = stall;
  instruction.line = static_cast<uint32_t>(std::ranges::count(std::string_view(kHead), '\n')) + 1 +
                     line;
  return instruction;
}

constexpr uint16_t kAdd = 0x021, kLoad = 0x181, kSharedLoad = 0x184, kExit = 0x14d;

TEST(Timeline, BulkCopiesOfWhatWasReadComeFromL2) {
  const auto copy = [](const std::string& from, int parity) {
    return "mbarrier.arrive.expect_tx.shared.b64 %rd2, [s+2048], 256;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [" +
           from + "], 256, [s+2048];\nW" + std::to_string(parity) +
           ":\nmbarrier.try_wait.parity.shared.b64 %p1, [s+2048], " + std::to_string(parity) +
           ";\n@!%p1 bra W" + std::to_string(parity) + ";\n";
  };
  const std::string first = "mbarrier.init.shared.b64 [s+2048], 1;\n" + copy("%rd1", 0);
  const auto same = Counted(first + copy("%rd1", 1), 1).path,
             other = Counted(first + copy("%rd1+4096", 1), 1).path;
  const Latencies expected;
  EXPECT_EQ(same[0], other[0]);
  EXPECT_NEAR(other[1] - same[1], expected.miss[1] - expected.miss[0], 1);
}

TEST(Timeline, LanesTakeTurnsWhereLoadStoreUnitsAreFew) {
  std::string body = "shl.b32 %r2, %r1, 2;\n";
  MachineCode code;
  for (uint32_t i = 0; i < 40; ++i) {
    body += "ld.shared.f32 %f3, [%r2+" + std::to_string(4 * i) + "];\n";
    code.push_back(Machine(1 + i, kSharedLoad, 1));
  }
  code.push_back(Machine(41, kExit, 5));
  const Measured all = Counted(body, 32, 0, &code),
                 halves = Counted(body, 32, 0, &code, 1, true, 2);
  EXPECT_EQ(all.counts.shared.issued_wavefronts, 40u);
  EXPECT_EQ(halves.counts.shared.issued_wavefronts, 80u);
  const Measured text = Counted(body), text_halves = Counted(body, 32, 0, nullptr, 1, true, 2);
  EXPECT_GT(text_halves.path[0], text.path[0] + 20);
}

TEST(Timeline, CountsAreTheSameWithoutOne) {
  const std::string body =
      "shl.b32 %r2, %r1, 3;\nld.shared.f32 %f3, [%r2];\nld.shared.f32 %f4, [%r2+4];\nld.shared.f32 "
      "%f5, [%r2+8];\n"
      "cvt.u64.u32 %rd2, %r2;\nadd.s64 %rd2, %rd1, %rd2;\nld.global.f32 %f6, "
      "[%rd2];\nst.global.f32 [%rd2], %f3;\n";
  const Counts with = Counted(body).counts;
  Counts without = Counted(body, 32, 0, nullptr, 1, false).counts;
  EXPECT_GT(with.path[0], 0);
  EXPECT_EQ(without.path[0], 0);
  EXPECT_EQ(with.shared.requests, 3u);
  EXPECT_EQ(with.shared.wavefronts, 6u) << "two lanes a bank, each time";
  EXPECT_EQ(with.global.load_sectors, 8u);
  without.path = with.path;
  without.longest_path = with.longest_path;
  EXPECT_EQ(without.Figures(), with.Figures());
}

TEST(Timeline, WhatABlockLoadsAndStoresIsCounted) {
  const std::string at = "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\n";
  const std::string body = at + "ld.global.f32 %f3, [%rd3];\nst.global.f32 [%rd3+64], %f3;\n";
  EXPECT_EQ(Counted(body).counts.global.updated_sectors, 2u)
      << "of four sectors each, two are the same";
}

TEST(Timeline, StallsOfTheMachineCodeAddUp) {
  const std::string body = Repeat(10, "add.f32 %f3, %f1, %f2;\n");
  const auto code = [](uint8_t stall) {
    MachineCode all;
    for (uint32_t i = 0; i < 10; ++i) all.push_back(Machine(i, kAdd, stall));
    all.push_back(Machine(10, kExit, 5));
    return all;
  };
  const MachineCode close = code(1), apart = code(4);
  const Measured fast = Counted(body, 32, 0, &close), slow = Counted(body, 32, 0, &apart);
  EXPECT_NEAR(slow.path[0] - fast.path[0], 30, 0.01);
  EXPECT_EQ(fast.counts.issued, 11u);
  EXPECT_EQ(fast.counts.pipe_uses[static_cast<size_t>(Pipe::kFma)], 10u);
}

TEST(Timeline, ScoreboardsOfTheMachineCodeHold) {
  const std::string body =
      "ld.global.f32 %f3, [%rd1];\nadd.f32 %f4, %f1, %f2;\nadd.f32 %f5, %f1, %f3;\n";
  MachineCode code = {Machine(0, kLoad, 1), Machine(1, kAdd, 4), Machine(2, kAdd, 4),
                      Machine(3, kExit, 5)};
  code[0].result_barrier = 2;
  const double none = Counted(body, 32, 0, &code).path[1];
  code[2].waits = 1 << 2;
  const Measured waits = Counted(body, 32, 0, &code);
  const Latencies expected;
  EXPECT_NEAR(waits.path[1] - none, expected.miss[1] - 5, 1);
  EXPECT_NEAR(waits.path[1] - waits.path[0], expected.miss[1] - expected.miss[0], 1);
}

TEST(Timeline, SpilledRegistersComeFromLocalMemory) {
  constexpr uint16_t kLocalLoad = 0x183;
  const std::string body = "add.f32 %f4, %f1, %f2;\nadd.f32 %f5, %f1, %f4;\n";
  MachineCode code = {Machine(0, kLocalLoad, 1), Machine(0, kAdd, 4), Machine(1, kAdd, 4),
                      Machine(2, kExit, 5)};
  code[0].result_barrier = 2;
  code[0].words = 2;
  const double none = Counted(body, 32, 0, &code).path[0];
  code[1].waits = 1 << 2;
  const Measured waits = Counted(body, 32, 0, &code);
  EXPECT_NEAR(waits.path[0] - none, Latencies{}.spill - 1, 1);
  EXPECT_EQ(waits.counts.spilled_words, 2u);
  EXPECT_EQ(waits.counts.shared.issued_wavefronts, 2u);
}

TEST(Timeline, MachineCodeThatFitsBadlyIsLeftAside) {
  const std::string body = Repeat(30, "fma.rn.f32 %f1, %f1, %f2, %f2;\n");
  const MachineCode code = {Machine(0, kAdd, 4), Machine(30, kExit, 5)};
  EXPECT_EQ(Counted(body, 32, 0, &code).path, Counted(body).path);
}

// What a thread beyond the end jumps over in the PTX takes its turns under predicates in the
// machine code.
TEST(Timeline, MachineCodeOfPredicatesThatDoNotHoldIsUnderstood) {
  const std::string body = "setp.gt.u32 %p1, %r1, 99;\nsetp.le.u32 %p2, %r1, 99;\n@%p2 bra END;\n" +
                           Repeat(40, "fma.rn.f32 %f1, %f1, %f2, %f2;\n") + "END:\n";
  MachineCode code = {Machine(0, 0x00c, 4)};
  for (uint32_t i = 0; i < 40; ++i) code.push_back(Machine(3 + i, kAdd, 4));
  code.push_back(Machine(44, kExit, 5));
  EXPECT_EQ(Counted(body, 32, 0, &code).counts.issued, 42u);
}

TEST(Timeline, DependentInstructionsWaitForEachOther) {
  const Latencies expected;
  const double ten = Counted(Repeat(10, "fma.rn.f32 %f1, %f1, %f2, %f2;\n")).path[0];
  const double fifty = Counted(Repeat(50, "fma.rn.f32 %f1, %f1, %f2, %f2;\n")).path[0];
  EXPECT_NEAR((fifty - ten) / 40, expected.step, 0.01);
}

TEST(Timeline, IndependentInstructionsIssueOneACycle) {
  std::string body;
  for (int i = 0; i < 90; ++i) body += "add.f32 %f" + std::to_string(5 + i) + ", %f1, %f2;\n";
  EXPECT_LT(Counted(body).path[0], 90 + 60);
}

TEST(Timeline, LoadsThatDependPayLatencyEach) {
  const auto chain = [](int n, int apart = 128) {
    std::string body;
    for (int i = 0; i < n; ++i)
      body += "ld.global.u32 %r2, [%rd1+" + std::to_string(i * apart) +
              "];\ncvt.u64.u32 %rd2, %r2;\nadd.s64 %rd1, %rd1, %rd2;\n";
    return Counted(body).path;
  };
  const Latencies expected;
  const auto one = chain(1), five = chain(5);
  EXPECT_NEAR((five[0] - one[0]) / 4, expected.miss[0], 30);
  EXPECT_NEAR((five[1] - one[1]) / 4, expected.miss[1], 30);
  EXPECT_NEAR((chain(5, 64)[1] - one[1]) / 4, expected.miss[1], 30);
  EXPECT_NEAR((chain(5, 32)[1] - one[1]) / 4, (expected.miss[0] + expected.miss[1]) / 2, 30)
      << "DRAM brings 64 bytes";
}

TEST(Timeline, LoadsMoveAheadWhileRegistersLast) {
  std::string body;
  for (int i = 0; i < 64; ++i) {
    body += "ld.global.f32 %f3, [%rd1+" + std::to_string(i * 128) + "];\n";
    body += "fma.rn.f32 %f1, %f3, %f2, %f1;\n";
  }
  const double many = Counted(body, 32, 255).path[1];
  const double few = Counted(body, 32, 20).path[1];
  EXPECT_GT(few, 1.8 * many) << "few registers keep few loads in flight";
  EXPECT_LE(few, 64 * 800);
}

TEST(Timeline, AddressesMoveAheadWithTheirLoads) {
  const auto path = [](const std::string& offset) {
    std::string body;
    for (int i = 0; i < 16; ++i) {
      body += std::string("shl.b32 %r2, %r1, 2;\n") + Repeat(6, "xor.b32 %r2, %r2, 0;\n") +
              "cvt.u64.u32 %rd2, " + offset +
              ";\nadd.s64 %rd2, %rd1, %rd2;\nld.global.f32 %f3, [%rd2+" + std::to_string(i * 128) +
              "];\nfma.rn.f32 %f1, %f3, %f2, %f1;\n";
    }
    return Counted(body, 32, 255).path[1];
  };
  EXPECT_LT(path("%r2"), 2.5 * 680)
      << "loads whose addresses take ten instructions each are on the way together";
}

TEST(Timeline, BarriersWaitForTheLastWarp) {
  const std::string slow_first = "setp.lt.u32 %p1, %r1, 32;\n@!%p1 bra DONE;\n" +
                                 Repeat(100, "sqrt.rn.f32 %f1, %f1;\n") + "DONE:\nbar.sync 0;\n";
  EXPECT_GT(Counted(slow_first, 64).path[0], 100 * 24);
  const double one = Counted(Repeat(10, "bar.sync 0;\n"), 32).path[0];
  const double eight = Counted(Repeat(10, "bar.sync 0;\n"), 256).path[0];
  EXPECT_GT(eight, one);
}

TEST(Timeline, StoresHoldBackLoadsOfOtherBases) {
  const std::string same =
      "ld.global.f32 %f3, [%rd1];\nst.global.f32 [%rd1], %f3;\nld.global.f32 %f4, "
      "[%rd1+256];\nst.global.f32 "
      "[%rd1+256], %f4;\n";
  const std::string other =
      "add.s64 %rd2, %rd1, 256;\nld.global.f32 %f3, [%rd1];\nst.global.f32 [%rd1], "
      "%f3;\nld.global.f32 %f4, "
      "[%rd2];\nst.global.f32 [%rd2], %f4;\n";
  EXPECT_GT(Counted(other).path[1], Counted(same).path[1] + 500);
}

TEST(Timeline, LoadsOfConstantsPassStores) {
  const auto path = [](const std::string& space) {
    return Counted("add.s64 %rd2, %rd1, 256;\nld." + space +
                   ".f32 %f3, [%rd1];\nst.global.f32 [%rd1], %f3;\nld." + space +
                   ".f32 %f4, [%rd2];\nst.global.f32 [%rd2], %f4;\n")
        .path[1];
  };
  EXPECT_GT(path("global"), path("global.nc") + 500);
}

/// Loads under a condition, with `extra` instructions under it besides.
double GuardedLoads(int extra) {
  std::string body = "setp.lt.u32 %p1, %r1, 16;\n";
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    body += "@!%p1 bra L" + number + ";\nld.global.f32 %f3, [%rd1+" + std::to_string(i * 128) +
            "];\nadd.f32 %f1, %f1, %f3;\n" + Repeat(extra, "add.f32 %f1, %f1, %f2;\n") + "L" +
            number + ":\n";
  }
  return Counted(body, 32, 255).path[1];
}

TEST(Timeline, ShortBranchesBecomePredicates) {
  EXPECT_LT(GuardedLoads(0), 2 * 700) << "all loads are on the way at once";
  EXPECT_LT(GuardedLoads(15), 2 * 700 + 8 * 80);
  EXPECT_GT(GuardedLoads(25), 6 * 600) << "a long way keeps its branch";
}

TEST(Timeline, ShortWaysOfAnElseBecomePredicates) {
  const auto ways = [](int length) {
    std::string body = "setp.lt.u32 %p1, %r1, 16;\n";
    for (int i = 0; i < 10; ++i) {
      const std::string n = std::to_string(i);
      body += "@%p1 bra A" + n + ";\n" + Repeat(length, "add.f32 %f3, %f1, %f2;\n") + "bra.uni B" +
              n + ";\nA" + n + ":\n" + Repeat(length, "mul.f32 %f4, %f1, %f2;\n") + "B" + n + ":\n";
    }
    return Counted(body).path[0];
  };
  EXPECT_LT(ways(2), 10 * 8 + 60);
  EXPECT_GT(ways(9), 10 * 2 * 13);
}

TEST(Timeline, SharedConflictsAndBroadcasts) {
  const auto wavefronts = [](const std::string& scale) {
    return Counted("mul.lo.s32 %r2, %r1, " + scale +
                   ";\nand.b32 %r2, %r2, 4092;\nld.shared.f32 %f3, [%r2];\n")
        .counts.shared.wavefronts;
  };
  EXPECT_EQ(wavefronts("4"), 1u);
  EXPECT_EQ(wavefronts("8"), 2u);
  EXPECT_EQ(wavefronts("128"), 32u);
  EXPECT_EQ(wavefronts("0"), 1u);
  const auto wide = [](const std::string& lane, const std::string& load) {
    return Counted(lane + "mov.u32 %r3, s;\nadd.u32 %r2, %r2, %r3;\n" + load)
        .counts.shared.wavefronts;
  };
  const std::string two = "ld.shared.v2.f32 {%f3, %f4}, [%r2];\n";
  const std::string four = "ld.shared.v4.f32 {%f3, %f4, %f5, %f6}, [%r2];\n";
  const std::string all = "mov.u32 %r2, 0;\n";
  EXPECT_EQ(wide(all, two), 1u) << "lanes that want the same words share them";
  EXPECT_EQ(wide(all, four), 2u) << "but no more than half a warp gets 16 bytes each in one go";
  const std::string each_two = "shl.b32 %r2, %r1, 3;\n", each_four = "shl.b32 %r2, %r1, 4;\n";
  EXPECT_EQ(wide(each_two, two), 2u);
  EXPECT_EQ(wide(each_four, four), 4u);
  const std::string eighth_lane = "and.b32 %r2, %r1, 7;\n", fourth = "shr.u32 %r2, %r1, 2;\n";
  EXPECT_EQ(wide(eighth_lane + "shl.b32 %r2, %r2, 3;\n", two), 2u) << "the halves take turns";
  EXPECT_EQ(wide(eighth_lane + "shl.b32 %r2, %r2, 4;\n", four), 4u);
  EXPECT_EQ(wide(fourth + "shl.b32 %r2, %r2, 3;\n", two), 1u) << "neighbours want the same";
  EXPECT_EQ(wide(fourth + "shl.b32 %r2, %r2, 4;\n", four), 2u);
}

TEST(Timeline, EvictFirstLoadsLeaveNothingInL1) {
  // Rows of 128 bytes, more of them than may still be on their way, read twice.
  const auto twice = [](const std::string& kind) {
    std::string body = "shl.b32 %r2, %r1, 2;\ncvt.u64.u32 %rd2, %r2;\nadd.s64 %rd2, %rd1, %rd2;\n";
    for (int pass = 0; pass < 2; ++pass) {
      for (int row = 0; row < 64; ++row)
        body += "ld.global" + kind + ".f32 %f" + std::to_string(3 + row) + ", [%rd2+" +
                std::to_string(128 * row) + "];\n";
    }
    return Counted(body).counts;
  };
  const Counts plain = twice(""), evicted = twice(".cs");
  EXPECT_EQ(plain.global.l1_hit_sectors, 64u * 4);
  EXPECT_EQ(plain.global.reread_sectors, 0u);
  EXPECT_EQ(evicted.global.l1_hit_sectors, 0u);
  EXPECT_EQ(evicted.global.reread_sectors, 64u * 4);
  EXPECT_EQ(evicted.global.unique_load_sectors, plain.global.unique_load_sectors);
}

/// `copies` of the same 16 bytes a lane, one after the other; `size`: an operand, how many are
/// read.
Measured Copies(int copies, const std::string& kind, const std::string& size = "") {
  std::string body =
      "mov.u32 %r2, s;\nshl.b32 %r3, %r1, 4;\nadd.u32 %r2, %r2, %r3;\ncvt.u64.u32 %rd2, %r3;\n"
      "add.s64 %rd2, %rd1, %rd2;\n";
  body += Repeat(copies, "cp.async." + kind + ".shared.global [%r2], [%rd2], 16" + size + ";\n");
  return Counted(body + "cp.async.wait_all;\nadd.f32 %f3, %f1, %f2;\n");
}

TEST(Timeline, CopiesPastL1TakeTurns) {
  const Latencies expected;
  const Measured one = Copies(1, "cg"), many = Copies(41, "cg");
  EXPECT_EQ(one.counts.async_copy_bytes, 512u);
  EXPECT_EQ(many.counts.global.reread_sectors, 40u * 16) << "no L1 remembers them";
  EXPECT_EQ(many.counts.global.l1_hit_sectors, 0u);
  EXPECT_NEAR(many.path[0] - one.path[0], 40 * 512 / expected.port_bytes_per_clk, 20);
  const Measured near = Copies(41, "ca");
  EXPECT_EQ(near.counts.global.reread_sectors, 0u);
  EXPECT_EQ(near.counts.global.l1_hit_sectors, 40u * 16);
  EXPECT_LT(near.path[0], many.path[0] - 100);
}

TEST(Timeline, CopiesOfZerosReadNothing) {
  const Measured zeros = Copies(41, "cg", ", 0");
  EXPECT_EQ(zeros.counts.global.load_sectors, 0u);
  EXPECT_EQ(zeros.counts.async_copy_bytes, 0u);
  EXPECT_LT(zeros.path[1], Copies(1, "cg").path[1]);
}

TEST(Timeline, OtherBlocksSharedMemoryIsFarAway) {
  // Lanes load 4 or 16 bytes side by side from block 0 or 1, whose rank tells who is far.
  const auto loads = [](const char* rank, bool wide) {
    const std::string load = wide ? "ld.shared::cluster.v4.b32 {%r5, %r6, %r7, %r8}, [%r3];\n"
                                  : "ld.shared::cluster.b32 %r5, [%r3];\n";
    return Counted(
        std::string("mov.u32 %r2, s;\nmov.u32 %r9, %cluster_ctarank;\nxor.b32 %r9, %r9, ") + rank +
            ";\nmapa.shared::cluster.u32 %r3, %r2, %r9;\nshl.b32 %r4, %r1, " + (wide ? "4" : "2") +
            ";\nadd.u32 %r3, %r3, %r4;\n" + load +
            "add.u32 %r5, %r5, %r5;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
        32, 0, nullptr, 2);
  };
  const Measured own = loads("0", false), other = loads("1", false), wide = loads("1", true);
  const Latencies expected;
  EXPECT_EQ(own.counts.shared.remote_packets, 0u);
  EXPECT_EQ(other.counts.shared.remote_packets, 2u * 4) << "two blocks, 128 bytes each";
  EXPECT_EQ(wide.counts.shared.remote_packets, 2u * 32);
  EXPECT_NEAR((other.path[0] - own.path[0]) / 2,
              expected.remote + 4 * expected.remote_busy - expected.shared, 5);
}

TEST(OpCost, RowsFitTheirTypes) {
  const auto cost = [](const std::string& line) {
    auto module = ptx::Parse(kHead + line + "\nret;\n}\n");
    EXPECT_TRUE(module) << line;
    const auto& body = module->functions().front().body;
    return CostOf(body[body.size() - 2]);
  };
  const auto uses = [&](const std::string& line, Pipe pipe) {
    return cost(line).uses[static_cast<size_t>(pipe)];
  };
  EXPECT_EQ(uses("fma.rn.f32 %f1, %f1, %f1, %f1;", Pipe::kFma), 1);
  EXPECT_EQ(uses("add.s32 %r1, %r1, %r1;", Pipe::kEither), 1);
  EXPECT_EQ(uses("add.s64 %rd1, %rd1, %rd1;", Pipe::kAlu), 2);
  EXPECT_EQ(uses("mad.lo.s32 %r1, %r1, %r1, %r1;", Pipe::kImad), 1);
  EXPECT_EQ(uses("ex2.approx.ftz.f32 %f1, %f1;", Pipe::kSfu), 1);
  EXPECT_EQ(uses("cvt.rzi.s32.f32 %r1, %f1;", Pipe::kSfu), 1);
  EXPECT_EQ(uses("cvt.rn.f32.s32 %f1, %r1;", Pipe::kAlu), 1);
  EXPECT_EQ(cost("mov.u32 %r1, %r2;").issue, 0);
  EXPECT_EQ(cost("cvt.u64.u32 %rd1, %r1;").issue, 0);
  EXPECT_EQ(cost("sqrt.rn.f32 %f1, %f1;").wait, Wait::kRounded);
  EXPECT_EQ(cost("ld.param.u64 %rd1, [p];").issue, 0);
  EXPECT_EQ(cost("ld.global.f32 %f1, [%rd1];").wait, Wait::kMemory);
}

}  // namespace
}  // namespace atunner::vgpu
