// Foreign records of captures: whatever the bytes, a capture with valid indices or a message.
#include <cstdint>
#include <string_view>

#include "atunner/capture/capture_reader.h"
#include "atunner/capture/records.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::capture {
namespace {

bool Use(std::string_view bytes) {
  const auto capture = ParseCapture(bytes, "fuzz");
  if (!capture) return false;
  for (const CapturedLaunch& launch : capture->launches) {
    ATUNNER_CHECK(launch.kernel < capture->kernels.size());
    for (const CapturedParameter& parameter : launch.parameters) {
      for (const CapturedPointer& pointer : parameter.pointers)
        ATUNNER_CHECK(pointer.offset <= launch.buffers.at(pointer.buffer).bytes);
    }
  }
  for (size_t kernel = 0; kernel < capture->kernels.size(); ++kernel)
    (void)capture->RepeatableLaunches(kernel);
  return true;
}

}  // namespace
}  // namespace atunner::capture

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::capture::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::capture {
namespace {

TEST(CaptureFuzz, DamagedRecordsNeverCrash) {
  CapturedLaunch launch;
  launch.parameters = {{std::string(8, '\0'), {{0, 0, 16}}}, {"abcd", {}}};
  launch.buffers = {{64, std::string(32, 'a'), "", {{0, 8}, {16, 64}}, {{8, 0, 4}}}};
  launch.symbols = {{"c", 4, std::string(32, 'b'), ""}};
  std::string good;
  for (const Record& record : {Record(CaptureHead{"app", {"1"}, "A100", Evidence::kPredicted}),
                               Record(CapturedModule{std::string(32, '1'), "", 80}),
                               Record(CapturedKernel{0, "_Z1kPf", "k(float*)"}), Record(launch),
                               Record(GroupsRecord{{{0, {}, 3, 0.5}}}), Record(CaptureNote{"n"}),
                               Record(CaptureEnding{0, 0})})
    good += DumpJson(ToJson(record)) + "\n";
  ASSERT_TRUE(Use(good));
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) accepted += Use(Mutated(good, random));
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 4900);
}

}  // namespace
}  // namespace atunner::capture
#endif
