// Foreign traces: whatever the bytes, a timeline that can be analysed and drawn, or a message.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/trace/findings/finding.h"
#include "atunner/trace/page/timeline_page.h"
#include "atunner/trace/readers/byte_source.h"
#include "atunner/trace/readers/kineto_reader.h"
#include "atunner/trace/readers/nsys_reader.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"
#endif

namespace atunner::trace {
namespace {

Result<Timeline> Read(std::string_view bytes) {
  if (bytes.starts_with("SQLite format 3")) {
    ATUNNER_TRY(const SqliteFile file, SqliteFile::FromBytes(bytes));
    return ReadNsys(file, "fuzz");
  }
  TextSource source(bytes);
  return ReadKineto(source, "fuzz");
}

bool Use(std::string_view bytes) {
  const auto timeline = Read(bytes);
  if (!timeline) return false;
  const Analysis analysis = Analyze(*timeline);
  for (const DeviceTime& time : analysis.times.devices) {
    int64_t idle = 0;
    for (const int64_t cause : time.idle) idle += cause;
    ATUNNER_CHECK(idle == time.Idle());
  }
  (void)TimelinePage({&analysis, 1}, FindAll({analysis, nullptr}));
  return true;
}

}  // namespace
}  // namespace atunner::trace

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::trace::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::trace {
namespace {

void Damage(const std::string& good, int times) {
  ASSERT_TRUE(Use(good));
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < times; ++i) accepted += Use(Mutated(good, random)) ? 1 : 0;
  EXPECT_GT(accepted, times / 50);
  EXPECT_LT(accepted, times);
}

TEST(TraceFuzz, DamagedKineto) {
  Damage(ReadFile(ATUNNER_SOURCE_DIR "/atunner/trace/testdata/step.json").value(), 1000);
}

TEST(TraceFuzz, DamagedNsys) {
  Damage(ReadFile(ATUNNER_SOURCE_DIR "/atunner/trace/testdata/step.sqlite").value(), 300);
}

}  // namespace
}  // namespace atunner::trace
#endif
