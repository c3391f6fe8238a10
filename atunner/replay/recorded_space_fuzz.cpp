// Foreign cache files: whatever the bytes, an answer or a message.
#include <cstdint>
#include <string_view>

#include "atunner/replay/baseline.h"
#include "atunner/replay/gunzip.h"
#include "atunner/replay/recorded_space.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner {
namespace {

bool Use(std::string_view bytes) {
  if (IsGzip(bytes)) (void)Gunzip(bytes, size_t{1} << 24);
  const auto space = ParseRecordedSpace(bytes, "fuzz");
  if (!space) return false;
  ATUNNER_CHECK(space->time_ms.size() == space->index->size());
  for (uint64_t i = 0; i < space->index->size(); ++i)
    ATUNNER_CHECK(space->index->IndexOf(space->index->At(i)) == i);
  (void)BaselineOf(space->time_ms);
  return true;
}

}  // namespace
}  // namespace atunner

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner {
namespace {

TEST(RecordedSpaceFuzz, DamagedCachesNeverCrash) {
  const std::string good =
      R"({"device_name": "A", "tune_params": {"x": [1, 2, 4], "m": ["a", "b"], "f": [0.5, true]},
    "cache": {"1,a,0.5": {"x": 1, "m": "a", "f": 0.5, "time": 3.5, "compile_time": 10},
              "2,b,1": {"x": 2, "m": "b", "f": 1, "time": "RuntimeFailedConfig"},
              "4,b,1": {"x": 4, "m": "b", "f": true, "time": 1e20}}})";
  ASSERT_TRUE(Use(good));
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) accepted += Use(Mutated(good, random));
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 19000);
}

}  // namespace
}  // namespace atunner
#endif
