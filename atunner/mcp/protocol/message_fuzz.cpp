// Whatever bytes a client sends, each message has an answer or none, and nothing else happens.
#include <cstdint>
#include <string_view>

#include "atunner/mcp/protocol/session.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::mcp {
namespace {

class NoResources : public Resources {
 public:
  Result<std::vector<ResourceInfo>> List() override { return std::vector<ResourceInfo>{}; }
  std::vector<ResourceInfo> Templates() override { return {}; }
  Result<ResourceText> Read(const std::string&) override {
    return Fail(ErrorCode::kNotFound, "none");
  }
};

/// Sends the bytes to a new session. True if they were answered without an error of the protocol.
bool Use(std::string_view bytes) {
  static NoResources resources;
  Offer offer;
  offer.resources = &resources;
  offer.tools.push_back(
      {"echo", "", "", Json{{"type", "object"}}, true,
       [](const Json& arguments, const CallContext&) -> Result<Json> { return arguments; }});
  size_t answers = 0;
  bool fine = false;
  Session session(offer);
  const Session::Send send = [&](const std::string& text) {
    const auto json = ParseJson(text);
    ATUNNER_CHECK(json && text.find('\n') == std::string::npos);
    answers += json->contains("id");
    fine = json->contains("result");
  };
  if (const Session::Work work = session.Accept(bytes, send)) work();
  ATUNNER_CHECK(answers <= 1);
  return fine;
}

}  // namespace
}  // namespace atunner::mcp

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::mcp::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::mcp {
namespace {

TEST(MessageFuzz, DamagedMessagesNeverCrash) {
  const std::string good =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1]},)"
      R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{},"progressToken":3}}})";
  ASSERT_TRUE(Use(good));
  Random random(1);
  int fine = 0;
  for (int i = 0; i < 5000; ++i) fine += Use(Mutated(good, random));
  EXPECT_GT(fine, 50);
  EXPECT_LT(fine, 4900);
}

}  // namespace
}  // namespace atunner::mcp
#endif
