// Foreign rules files and tables: whatever the bytes, rules and decisions or a message.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/planning/comm/comm_choice.h"
#include "atunner/planning/comm/comm_table.h"
#include "atunner/planning/comm/tuner_rules.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::planning {
namespace {

bool UseTable(std::string_view bytes) {
  const auto table = ReadCommTable(bytes);
  if (!table) return false;
  const auto decisions = ChooseComm(*table);
  if (!decisions) return false;
  const auto rules = RulesOf(*decisions, table->gpus);
  ATUNNER_CHECK(ReadTunerRules(TunerRulesText(rules)) == rules);
  return true;
}

bool UseComm(std::string_view bytes) {
  if (bytes.starts_with('{')) return UseTable(bytes);
  const auto rules = ReadTunerRules(bytes);
  if (!rules) return false;
  ATUNNER_CHECK(ReadTunerRules(TunerRulesText(*rules)) == *rules);
  return true;
}

}  // namespace
}  // namespace atunner::planning

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::planning::UseComm({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::planning {
namespace {

void DamageComm(const std::string& good, uint64_t seed) {
  ASSERT_TRUE(UseComm(good));
  Random random(seed);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) accepted += UseComm(Mutated(good, random)) ? 1 : 0;
  EXPECT_GT(accepted, 10);
  EXPECT_LT(accepted, 1490);
}

TEST(CommFuzz, DamagedRules) {
  DamageComm("# rules\nallreduce,0,65536,tree,simple,2,1,-1,-1,1\nreduce,0,9,ring,ll,-1,-1,-1\n",
             1);
}

TEST(CommFuzz, DamagedTables) {
  DamageComm(R"({"schema":"atunner.comm-table/1","gpus":2,"rows":[
{"collective":"allreduce","bytes":1024,"stage":"final","algorithm":"default","us":[9,9,8,9,9,9,9]},
{"collective":"allreduce","bytes":1024,"stage":"final","algorithm":"ring","protocol":"ll",
"channels":4,"us":[5,5,5,5,5,5,5,5]}]})",
             2);
}

}  // namespace
}  // namespace atunner::planning
#endif
