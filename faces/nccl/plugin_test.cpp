// The plugin, loaded and called as NCCL does it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "atunner/base/files.h"
#include "faces/nccl/tuner_abi.h"

namespace atunner::nccl {
namespace {

constexpr int kAllReduce = 4, kAllGather = 2;
constexpr int kRing = 1, kLl = 0, kLl128 = 1, kSimple = 2;

using Costs = std::array<float, 21>;  // 7 algorithms, 3 protocols

float& At(Costs& costs, int algorithm, int protocol) {
  return costs[static_cast<size_t>(algorithm * 3 + protocol)];
}

Costs SomeCosts() {
  Costs costs;
  costs.fill(50);
  At(costs, 4, kSimple) = -1;  // NVLS is off
  return costs;
}

std::string g_log;
void Log(int /*level*/, unsigned long /*flags*/, const char* /*file*/, int /*line*/,
         const char* format, ...) {
  g_log += format;
}

class PluginTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = ::dlopen(ATUNNER_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    const std::string rules = (folder_.path() / "rules.conf").string();
    ASSERT_TRUE(WriteFileAtomic(rules,
                                "allreduce,0,4096,ring,ll,2,1,2\n"
                                "allreduce,4097,8192,nvls,simple,2,1,2\n"
                                "allreduce,8193,16384,ring,ll128,-1,1,2\n"));
    ::setenv("NCCL_TUNER_CONFIG_FILE", rules.c_str(), 1);
    g_log.clear();
  }

  template <class Tuner>
  const Tuner& Find(const char* symbol) {
    const auto* tuner = static_cast<const Tuner*>(::dlsym(library_, symbol));
    if (tuner == nullptr) throw std::runtime_error(symbol);
    return *tuner;
  }

  /// What NCCL sees after the call: channels, and the costs.
  template <class Tuner>
  int Ask(const Tuner& tuner, void* context, int collective, size_t bytes, Costs& costs) {
    int channels = 0;
    auto* const table = reinterpret_cast<float**>(costs.data());
    EXPECT_EQ(tuner.get_coll_info(context, collective, bytes, 1, table, 7, 3, 0, &channels), 0);
    return channels;
  }

  void* library_ = nullptr;
  TemporaryDirectory folder_;
};

TEST_F(PluginTest, Version4FollowsTheRules) {
  const auto& tuner = Find<TunerV4>("ncclTunerPlugin_v4");
  EXPECT_STREQ(tuner.name, "atunner");
  void* context = nullptr;
  ASSERT_EQ(tuner.init(2, 1, Log, &context), 0);
  EXPECT_THAT(g_log, testing::HasSubstr("rules of"));
  Costs costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllReduce, 4096, costs), 2);
  EXPECT_EQ(At(costs, kRing, kLl), 0);
  EXPECT_EQ(At(costs, kRing, kSimple), 50);
  costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllReduce, 16384, costs), 0) << "NCCL's number of channels";
  EXPECT_EQ(At(costs, kRing, kLl128), 0);
  EXPECT_EQ(tuner.destroy(context), 0);
}

TEST_F(PluginTest, LeavesAloneWhatNoRuleNamesOrNcclCannotRun) {
  const auto& tuner = Find<TunerV4>("ncclTunerPlugin_v4");
  void* context = nullptr;
  ASSERT_EQ(tuner.init(2, 1, nullptr, &context), 0);
  for (const auto& [collective, bytes] :
       {std::pair(kAllReduce, size_t{8192}), std::pair(kAllReduce, size_t{1} << 40),
        std::pair(kAllGather, size_t{4096})}) {
    Costs costs = SomeCosts();
    EXPECT_EQ(Ask(tuner, context, collective, bytes, costs), 0);
    EXPECT_EQ(costs, SomeCosts());
  }
  EXPECT_EQ(tuner.destroy(context), 0);
  ASSERT_EQ(tuner.init(4, 1, nullptr, &context), 0);  // the rules are for 2 ranks
  Costs costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllReduce, 4096, costs), 0);
  EXPECT_EQ(costs, SomeCosts());
  EXPECT_EQ(tuner.destroy(context), 0);
}

TEST_F(PluginTest, LaterVersionsFollowTheSameRules) {
  const auto& v5 = Find<TunerV5>("ncclTunerPlugin_v5");
  const auto& v6 = Find<TunerV6>("ncclTunerPlugin_v6");
  EXPECT_EQ(v6.get_chunk_size, nullptr);
  void* context = nullptr;
  ASSERT_EQ(v5.init(&context, 1, 2, 1, Log, nullptr, nullptr), 0);
  Costs costs = SomeCosts();
  EXPECT_EQ(Ask(v5, context, kAllReduce, 1, costs), 2);
  EXPECT_EQ(v5.finalize(context), 0);
  ASSERT_EQ(v6.init(&context, 1, 2, 1, Log, nullptr, nullptr), 0);
  costs = SomeCosts();
  EXPECT_EQ(Ask(v6, context, kAllReduce, 1, costs), 2);
  EXPECT_EQ(v6.finalize(context), 0);
}

TEST_F(PluginTest, WithoutRulesNcclDecides) {
  ::setenv("NCCL_TUNER_CONFIG_FILE", "/nowhere/rules.conf", 1);
  const auto& tuner = Find<TunerV4>("ncclTunerPlugin_v4");
  void* context = nullptr;
  ASSERT_EQ(tuner.init(2, 1, Log, &context), 0);
  EXPECT_THAT(g_log, testing::HasSubstr("no rules"));
  Costs costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllReduce, 4096, costs), 0);
  EXPECT_EQ(costs, SomeCosts());
  EXPECT_EQ(tuner.destroy(context), 0);
}

TEST_F(PluginTest, AMeasurementSetsTheChoice) {
  using Force = void (*)(int, int, int);
  const auto force = reinterpret_cast<Force>(::dlsym(library_, "atunner_nccl_force"));
  const auto taken = reinterpret_cast<int (*)()>(::dlsym(library_, "atunner_nccl_taken"));
  ASSERT_TRUE(force && taken);
  const auto& tuner = Find<TunerV4>("ncclTunerPlugin_v4");
  void* context = nullptr;
  ASSERT_EQ(tuner.init(2, 1, Log, &context), 0);
  force(kRing, kLl128, 24);
  Costs costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllGather, 4096, costs), 24);
  EXPECT_EQ(At(costs, kRing, kLl128), 0);
  EXPECT_EQ(taken(), 1);
  force(4, kSimple, -1);  // impossible: the caller must learn that
  costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllGather, 4096, costs), 0);
  EXPECT_EQ(taken(), 0);
  force(-1, 0, 0);
  costs = SomeCosts();
  EXPECT_EQ(Ask(tuner, context, kAllReduce, 4096, costs), 2) << "the rules hold again";
  EXPECT_EQ(tuner.destroy(context), 0);
}

}  // namespace
}  // namespace atunner::nccl
