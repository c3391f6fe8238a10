// Foreign targets of requests: whatever the bytes, segments that lead nowhere else, or a message.
#include <cstdint>
#include <string_view>

#include "atunner/http/url.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::http {
namespace {

bool Use(std::string_view bytes) {
  const auto url = ParseUrl(bytes);
  if (!url) return false;
  std::string rebuilt;
  for (const std::string& segment : url->path) {
    ATUNNER_CHECK(!segment.empty() && segment != "." && segment != "..");
    ATUNNER_CHECK(segment.find('/') == std::string::npos &&
                  segment.find('\0') == std::string::npos);
    rebuilt += "/" + PercentEncode(segment);
  }
  const auto again = ParseUrl(rebuilt.empty() ? "/" : rebuilt);
  ATUNNER_CHECK(again && again->path == url->path);
  return true;
}

}  // namespace
}  // namespace atunner::http

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::http::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::http {
namespace {

TEST(UrlFuzz, DamagedTargetsNeverCrash) {
  const std::string good = "/api/v1/runs/2026%2d11/trials?limit=5&sort=-time_ns&p.vector=4%20x";
  ASSERT_TRUE(Use(good));
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) accepted += Use(Mutated(good, random));
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 4900);
}

}  // namespace
}  // namespace atunner::http
#endif
