// Foreign bytes in place of a nats-server's: whatever they are, operations or a message, and the
// same ones however the bytes are divided.
#include <cstdint>
#include <string_view>

#include "atunner/nats/protocol.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::nats {
namespace {

constexpr size_t kMostBytes = 4096;

/// What was read, as text that can be compared.
std::string Read(Parser& parser) {
  std::string read;
  while (true) {
    auto next = parser.Next();
    if (!next) return read + "refused";
    if (!*next) return read;
    const Message& message = (*next)->message;
    ATUNNER_CHECK(message.payload.size() <= kMostBytes);
    read += std::to_string(static_cast<int>((*next)->kind)) + (*next)->text + message.subject +
            message.reply + std::to_string(message.status) + message.payload + "|";
  }
}

/// True if all bytes were understood.
bool Use(std::string_view bytes) {
  Parser whole(kMostBytes);
  whole.Feed(bytes);
  const std::string expected = Read(whole);
  Parser pieces(kMostBytes);
  std::string got;
  for (size_t i = 0; i < bytes.size() && !got.ends_with("refused"); i += 3) {
    pieces.Feed(bytes.substr(i, 3));
    got += Read(pieces);
  }
  ATUNNER_CHECK(got == expected);
  return !got.ends_with("refused");
}

}  // namespace
}  // namespace atunner::nats

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::nats::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::nats {
namespace {

TEST(NatsProtocolFuzz, DamagedSessionsNeverCrash) {
  const std::string good =
      "INFO {\"a\":1}\r\n+OK\r\nPING\r\nMSG a.b 1 r 5\r\nhello\r\n"
      "HMSG a 2 36 38\r\nNATS/1.0\r\nNats-Msg-Id: 5\r\nEmpty:\r\n\r\nhi\r\n-ERR 'no'\r\n";
  ASSERT_TRUE(Use(good));
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) accepted += Use(Mutated(good, random));
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 4900);
}

}  // namespace
}  // namespace atunner::nats
#endif
