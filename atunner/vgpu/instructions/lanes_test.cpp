// Operations of lanes with each other, compared with their definition lane by lane, on both builds
// of the engine: shuffles, powers of two, and the counts of irregular accesses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "atunner/base/random.h"
#include "atunner/vgpu/backend.h"

namespace atunner::vgpu {
namespace {

/// Runs entry `k(.param .u64 in, .param .u64 out)` on one block.
class Lanes : public testing::TestWithParam<ProgramLoader> {
 protected:
  void SetUp() override {
    if (GetParam() == &avx2::Load &&
        !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
      GTEST_SKIP() << "this processor has no AVX2";
  }
  void Run(const std::string& body, const std::vector<uint32_t>& in, uint32_t threads,
           size_t results) {
    const std::string ptx =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .b32 %i, %v, %b, %c, %r<4>;\n.reg .b64 %from, %to, %at, %w<4>;\n.reg .pred %p;\n"
        "ld.param.u64 %from, [in];\nld.param.u64 %to, [out];\nmov.u32 %i, %tid.x;\n" +
        body + "ret;\n}\n";
    program_ = GetParam()(ptx::Parse(ptx).value(), memory_).value();
    const uint64_t from = memory_.Allocate(in.size() * sizeof(uint32_t)).value();
    const uint64_t to = memory_.Allocate(std::max<size_t>(1, results) * sizeof(uint32_t)).value();
    std::memcpy(reinterpret_cast<void*>(from), in.data(), in.size() * sizeof(uint32_t));
    std::vector<std::byte> params(16);
    std::memcpy(params.data(), &from, 8);
    std::memcpy(params.data() + 8, &to, 8);
    ExecOptions options;
    options.count = true;
    const ExecResult result = program_->Run("k", {{1, 1, 1}, {threads, 1, 1}, {1, 1, 1}, 0}, params,
                                            options);
    ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
    counts_ = result.counts;
    out_.resize(results);
    if (results > 0)
      std::memcpy(out_.data(), reinterpret_cast<const void*>(to), results * sizeof(uint32_t));
  }

  Memory memory_{uint64_t{1} << 26};
  std::unique_ptr<Program> program_;
  Counts counts_;
  std::vector<uint32_t> out_;
};

INSTANTIATE_TEST_SUITE_P(Builds, Lanes, testing::Values(&avx2::Load, &portable::Load),
                         [](const auto& build) {
                           return build.param == &avx2::Load ? std::string("Avx2")
                                                             : std::string("Portable");
                         });

/// By the pseudocode of the PTX manual: the source lane, or -1.
int ShuffleFrom(const std::string& mode, int lane, uint32_t b, uint32_t c) {
  const int bval = static_cast<int>(b & 31), cval = static_cast<int>(c & 31),
            mask = static_cast<int>(c >> 8 & 31);
  const int max_lane = (lane & mask) | (cval & ~mask), min_lane = lane & mask;
  if (mode == "up") return lane - bval >= max_lane ? lane - bval : -1;
  if (mode == "down") return lane + bval <= max_lane ? lane + bval : -1;
  const int from = mode == "bfly" ? lane ^ bval : min_lane | (bval & ~mask);
  return from <= max_lane ? from : -1;
}

TEST_P(Lanes, ShuffleAsDefined) {
  Random random(11);
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (int pass = 0; pass < 40; ++pass) {
      // of each lane: a value, an offset, and limits that segments of 2^k lanes have
      std::vector<uint32_t> in(96);
      const uint32_t width = 1u << random.Below(6);
      for (uint32_t l = 0; l < 32; ++l) {
        in[3 * l] = static_cast<uint32_t>(random.Below(1000));
        in[3 * l + 1] = static_cast<uint32_t>(pass % 2 ? random.Below(64)
                                                       : static_cast<uint64_t>(pass) / 2);
        const uint64_t clamp = mode == "up" ? 0 : pass % 3 == 0 ? random.Below(32) : 31;
        in[3 * l + 2] = (32 - width) << 8 | static_cast<uint32_t>(clamp);
      }
      Run("mul.wide.u32 %at, %i, 12;\nadd.u64 %from, %from, %at;\nld.global.u32 %v, [%from];\n"
          "ld.global.u32 %b, [%from+4];\nld.global.u32 %c, [%from+8];\nshfl.sync." +
              mode +
              ".b32 %r0|%p, %v, %b, %c, -1;\nselp.u32 %r1, 1, 0, %p;\n"
              "mul.wide.u32 %at, %i, 8;\nadd.u64 %to, %to, %at;\nst.global.v2.u32 [%to], {%r0, "
              "%r1};\n",
          in, 32, 64);
      for (int l = 0; l < 32; ++l) {
        const auto lane = static_cast<size_t>(l);
        const int from = ShuffleFrom(mode, l, in[3 * lane + 1], in[3 * lane + 2]);
        ASSERT_EQ(out_[2 * lane + 1], from >= 0 ? 1u : 0u) << mode << " of lane " << l;
        ASSERT_EQ(out_[2 * lane], in[3 * static_cast<size_t>(from >= 0 ? from : l)])
            << mode << " of lane " << l;
      }
    }
  }
}

/// The ISA allows two units in the last place, and hardware uses them; conformance/sweeps.txt has
/// its very results.
TEST_P(Lanes, PowersOfTwoAreWithinTwoUnitsAndOfWholeNumbersExact) {
  constexpr uint32_t kThreads = 1024, kEach = 64;
  std::vector<uint32_t> in(size_t{kThreads} * kEach);
  Random random(12);
  for (uint32_t& v : in) {
    const double x = (static_cast<double>(random.Below(1u << 30)) / (1u << 29) - 1) *
                     (random.Below(2) ? 150 : 2);
    v = std::bit_cast<uint32_t>(static_cast<float>(x));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {kInfinity, -kInfinity, 1e30f, -1e30f, 128, 127.99999f,
                           -150,      -149,       0,     -0.0f,  5,   -7};
  for (size_t i = 0; i < std::size(special); ++i) in[i] = std::bit_cast<uint32_t>(special[i]);
  in[20] = 0x7fc00000u;
  in[21] = 0xffffffffu;
  Run("mul.wide.u32 %at, %i, 4;\nadd.u64 %from, %from, %at;\nadd.u64 %to, %to, %at;\nmov.u32 %c, "
      "0;\n"
      "$loop:\nld.global.u32 %v, [%from];\nex2.approx.f32 %v, %v;\nst.global.u32 [%to], %v;\n"
      "add.u64 %from, %from, 4096;\nadd.u64 %to, %to, 4096;\nadd.u32 %c, %c, 1;\nsetp.lt.u32 %p, "
      "%c, 64;\n"
      "@%p bra $loop;\n",
      in, kThreads, in.size());
  size_t off = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const auto x = std::bit_cast<float>(in[i]);
    const auto y = std::bit_cast<float>(out_[i]);
    const auto exact = static_cast<float>(std::exp2(static_cast<double>(x)));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(y));
      continue;
    }
    off += y != exact;
    ASSERT_LE(std::abs(static_cast<int64_t>(out_[i]) - std::bit_cast<uint32_t>(exact)), 2)
        << "of " << x;
    if (x == std::floor(x)) ASSERT_EQ(y, exact) << "of " << x;
  }
  EXPECT_GT(off, in.size() / 100);
}

TEST_P(Lanes, IrregularAccessesAreCountedAsDefined) {
  Random random(13);
  const char* const types[] = {"u8 %r0, [%at]", "u32 %r0, [%at]", "u64 %w0, [%at]",
                               "v2.u64 {%w0, %w1}, [%at]"};
  const uint32_t sizes[] = {1, 4, 8, 16};
  for (int pass = 0; pass < 200; ++pass) {
    const auto kind = static_cast<size_t>(pass % 4);
    const uint32_t bytes = sizes[kind];
    const uint32_t threads = pass % 3 ? 32 : 1 + static_cast<uint32_t>(random.Below(31));
    std::vector<uint32_t> in(32 + 4096, 0);  // places of the lanes, then data
    const uint64_t spread = random.Below(2) ? 20 : 600;
    for (uint32_t l = 0; l < 32; ++l)
      in[l] = static_cast<uint32_t>(pass % 5 == 0   ? l * 3
                                    : pass % 5 == 1 ? l / 8 * 100 + l % 8
                                                    : random.Below(spread));
    Run("mul.wide.u32 %at, %i, 4;\nadd.u64 %at, %from, %at;\nld.global.u32 %c, "
        "[%at];\nmul.wide.u32 %at, %c, " +
            std::to_string(bytes) +
            ";\nadd.u64 %at, %from, %at;\nadd.u64 %at, %at, 128;\nld.global." + types[kind] +
            ";\nld.global." + types[kind] + ";\n",
        in, threads, 0);
    std::set<uint64_t> sectors;
    uint64_t wavefronts = 1;  // of the places
    const uint32_t together = bytes <= 4 ? 32 : 128 / bytes;
    for (uint32_t first = 0; first < threads; first += together) {
      std::set<uint64_t> lines;
      std::map<uint64_t, std::set<uint64_t>> words;  // by bank
      for (uint32_t l = first; l < std::min(threads, first + together); ++l) {
        const uint64_t at = uint64_t{in[l]} * bytes;
        sectors.insert(at / 32);
        lines.insert(at / 128);
        for (uint64_t word = at / 4; word <= (at + bytes - 1) / 4; ++word)
          words[word % 32].insert(word);
      }
      size_t conflicts = 1;
      for (const auto& [bank, distinct] : words) conflicts = std::max(conflicts, distinct.size());
      wavefronts += std::max(lines.size(), conflicts);            // L1 does not hold them yet
      wavefronts += std::max((lines.size() + 3) / 4, conflicts);  // now it does
    }
    ASSERT_EQ(counts_.global.load_sectors, 2 * sectors.size() + (threads + 7) / 8)
        << "pass " << pass;
    ASSERT_EQ(counts_.global.wavefronts, wavefronts) << "pass " << pass;
    ASSERT_EQ(counts_.global.load_bytes, uint64_t{threads} * (2 * bytes + 4));
  }
}

}  // namespace
}  // namespace atunner::vgpu
