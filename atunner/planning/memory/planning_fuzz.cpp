// Foreign snapshots and tables of buffers: whatever the bytes, valid buffers or a message.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/planning/memory/buffer_files.h"
#include "atunner/planning/memory/memory_plan.h"
#include "atunner/planning/memory/snapshot.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"
#endif

namespace atunner::planning {
namespace {

bool Use(std::string_view bytes) {
  auto problem = bytes.starts_with('\x80') ? ReadSnapshot(bytes, -1)
                 : bytes.starts_with('[')  ? ReadBufferJson(bytes)
                                           : ReadBufferCsv(bytes);
  if (!problem || !CheckBuffers(*problem)) return false;
  if (problem->buffers.size() > 200) return true;
  const MemoryPlan plan = PlanBuffers(*std::move(problem), 0, 0.001, 1);
  ATUNNER_CHECK(IsValid(plan.problem.buffers, plan.placement.offsets));
  ATUNNER_CHECK(plan.placement.peak >= plan.bound);
  return true;
}

}  // namespace
}  // namespace atunner::planning

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::planning::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::planning {
namespace {

void Damage(const std::string& good, uint64_t seed) {
  ASSERT_TRUE(Use(good));
  Random random(seed);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) accepted += Use(Mutated(good, random)) ? 1 : 0;
  EXPECT_GT(accepted, 10);
  EXPECT_LT(accepted, 1490);
}

TEST(PlanningFuzz, DamagedSnapshots) {
  Damage(ReadFile(ATUNNER_SOURCE_DIR "/atunner/planning/memory/testdata/snapshot.pickle").value(),
         1);
}

TEST(PlanningFuzz, DamagedTables) {
  Damage("id,lower,upper,size\na,0,2,4\nb,1,3,2\nc,2,3,4\nd,0,9,7\n", 2);
  Damage(R"([{"id":"a","lower":0,"upper":3,"size":4},{"id":"b","lower":1,"upper":4,"size":2}])", 3);
}

}  // namespace
}  // namespace atunner::planning
#endif
